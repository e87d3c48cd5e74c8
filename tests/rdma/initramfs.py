"""What the guest boots into: busybox, a few modules, and a script that puts the host's files below it."""

import lzma
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.rdma.kernel import Kernel, UnavailableError

BUSYBOX: Final = Path("/bin/busybox")

EARLY_MODULES: Final = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
"""What it takes to see the host's files; all others are loaded from there."""

_INIT: Final = """\
#!/bin/busybox sh
# The host's / is read through 9p, read-only; whatever the guest writes stays in memory.
/bin/busybox mkdir -p /proc /sys /lower /rw /new
/bin/busybox mount -t proc proc /proc
for module in {modules}; do /bin/busybox insmod /modules/$module; done
share=trans=virtio,version=9p2000.L,msize=512000
/bin/busybox mount -t 9p -o $share,ro,cache=loose host /lower &&
/bin/busybox mount -t tmpfs tmpfs /rw &&
/bin/busybox mkdir /rw/upper /rw/work &&
/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /new &&
/bin/busybox mkdir -p /new/mnt /new/lib/modules/{version} &&
/bin/busybox mount -t 9p -o $share out /new/mnt &&
/bin/busybox mount -o bind /lower{tree} /new/lib/modules/{version} &&
/bin/busybox mount -t proc proc /new/proc &&
/bin/busybox mount -t sysfs sysfs /new/sys &&
/bin/busybox mount -t devtmpfs devtmpfs /new/dev &&
/bin/busybox mount -t tmpfs tmpfs /new/run &&
/bin/busybox umount /proc &&
exec /bin/busybox switch_root /new /bin/busybox sh -c {then}
/bin/busybox poweroff -f
"""

_THEN: Final = """\
[ ! -e /mnt/python.tar ] || /bin/busybox tar -xf /mnt/python.tar -C /
{command} >/mnt/log 2>&1
/bin/busybox echo "guest: exit code $?"
/bin/busybox sync
/bin/busybox poweroff -f
"""


def write_initramfs(
    to: Path, kernel: Kernel, *, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Write the archive; the guest runs ``command`` among the host's files, and then ends.

    Raises
    ------
    UnavailableError
        If a tool is missing.
    """
    tree = to.with_suffix(".tree")
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("bin", "modules", "dev"):
        (tree / folder).mkdir(parents=True)
    try:
        shutil.copy2(BUSYBOX, tree / "bin" / "busybox")
    except FileNotFoundError:
        raise UnavailableError(f"there is no {BUSYBOX}; run as root: sh tests/rdma/packages.sh") from None
    names = [_put(module, tree / "modules") for module in kernel.files_of(*EARLY_MODULES)]
    variables = [f"{name}={value}" for name, value in environment.items()]
    init = tree / "init"
    init.write_text(
        _INIT.format(
            modules=" ".join(names),
            version=kernel.version,
            tree=shlex.quote(str(kernel.modules)),
            then=shlex.quote(_THEN.format(command=shlex.join(["/usr/bin/env", "-i", *variables, *command]))),
        )
    )
    init.chmod(0o755)
    files = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    with to.open("wb") as archive:
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"],
            cwd=tree,
            input=files.encode(),
            stdout=archive,
            check=True,
        )
    shutil.rmtree(tree)


def _put(module: Path, folder: Path) -> str:
    """A module as busybox can load it: Debian 13 compresses them."""
    data = module.read_bytes()
    name = module.name
    if name.endswith(".xz"):
        data, name = lzma.decompress(data), name.removesuffix(".xz")
    (folder / name).write_bytes(data)
    return name
