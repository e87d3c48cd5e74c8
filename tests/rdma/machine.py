"""The virtual machine: one command run under a stock Debian kernel, with the host's files read-only."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.rdma.initramfs import write_initramfs
from tests.rdma.kernel import UnavailableError, stock_kernel

QEMU: Final = "qemu-system-x86_64"

TIMEOUT_S: Final = 210
"""Five times what a run takes on two idle cores: one that needs more hangs."""

TAIL_LINES: Final = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind.

    Attributes
    ----------
    ended
        Whether the guest powered itself off in time.
    files
        Folder with all that the guest wrote under ``/mnt``.
    """

    ended: bool
    files: Path

    def tail(self) -> str:
        """The last lines of the console and of the command's output, for people."""
        parts = []
        for name in ("console", "log"):
            path = self.files / name
            text = path.read_text(errors="replace") if path.is_file() else "(nothing)"
            parts.append(f"--- {name} ---\n" + "\n".join(text.splitlines()[-TAIL_LINES:]))
        return "\n".join(parts)


def run_in_guest(
    command: Sequence[str], *, environment: Mapping[str, str], cache: Path, out: Path
) -> Outcome:
    """Boot, run ``command``, power off.

    Parameters
    ----------
    cache
        Where the kernel is kept from run to run.
    out
        A folder that the guest sees as ``/mnt`` and may write to.

    Raises
    ------
    UnavailableError
        If the machine lacks the emulator, a tool, or a kernel.
    """
    emulator = shutil.which(QEMU)
    if emulator is None:
        raise UnavailableError(f"there is no {QEMU}; run as root: sh tests/rdma/packages.sh")
    kernel = stock_kernel(cache.resolve())
    initramfs = out / "initramfs"
    write_initramfs(initramfs, kernel, command=command, environment=environment)
    share = "security_model=none,multidevs=remap"
    with (out / "console").open("wb") as console:
        try:
            subprocess.run(
                [
                    emulator,
                    *("-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2", "-m", "1024"),
                    *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"),
                    *("-kernel", str(kernel.image), "-initrd", str(initramfs)),
                    *("-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on"),
                    *("-virtfs", f"local,path=/,mount_tag=host,readonly=on,{share}"),
                    *("-virtfs", f"local,path={out.resolve()},mount_tag=out,{share}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(ended=False, files=out)
    return Outcome(ended=True, files=out)
