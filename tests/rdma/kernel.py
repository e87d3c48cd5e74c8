"""A stock Debian kernel for the guest: found through apt, downloaded, unpacked, never installed."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

META_PACKAGE: Final = "linux-image-amd64"
"""Whatever kernel the machine's own Debian release calls current; ``-cloud-amd64`` lacks rdma_rxe and 9p."""

DOWNLOAD_TIMEOUT_S: Final = 300


class UnavailableError(Exception):
    """This machine can't run the guest; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel.

    Attributes
    ----------
    version
        As ``uname -r`` prints it in the guest.
    root
        Folder that holds ``boot`` and ``lib/modules``.
    """

    version: str
    root: Path

    @property
    def image(self) -> Path:
        """What the emulator boots."""
        return self.root / "boot" / f"vmlinuz-{self.version}"

    @property
    def modules(self) -> Path:
        """Folder of the modules, with their index."""
        return self.root / "lib" / "modules" / self.version

    def files_of(self, *names: str) -> list[Path]:
        """The files of modules and of all that they need, in an order in which they can be loaded."""
        found: dict[Path, None] = {}
        for name in names:
            said = _run("modprobe", "--show-depends", "-d", str(self.root), "-S", self.version, name)
            for line in said.splitlines():
                if line.startswith("insmod "):
                    found[Path(line.split()[1])] = None
        return list(found)


def stock_kernel(cache: Path) -> Kernel:
    """The kernel that apt names now; unpacked before, or downloaded now.

    Raises
    ------
    UnavailableError
        If apt names or delivers none.
    """
    package = _package()
    version = package.removeprefix("linux-image-")
    kernel = Kernel(version, cache / package)
    if not (kernel.modules / "modules.dep").is_file():
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.glob("linux-image-*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()  # 400 MB each, and some may be cut off
        _unpack(package, kernel)
    return kernel


def _package() -> str:
    said = _run("apt-cache", "depends", META_PACKAGE)
    found = re.search(r"Depends: (linux-image-\d\S*-amd64)$", said, re.MULTILINE)
    if found is None:
        raise UnavailableError(f"apt knows no {META_PACKAGE}; run: apt-get update")
    return found[1]


def _unpack(package: str, kernel: Kernel) -> None:
    downloads = kernel.root.parent
    _run("apt-get", "download", package, cwd=downloads, timeout_s=DOWNLOAD_TIMEOUT_S)
    debs = sorted(downloads.glob(f"{package}_*.deb"))
    if not debs:
        raise UnavailableError(f"apt-get download {package} left no file")
    _run("dpkg-deb", "-x", str(debs[-1]), str(kernel.root))
    for deb in debs:
        deb.unlink()  # 70 MB that nobody reads again
    if not (kernel.root / "lib").exists():
        (kernel.root / "lib").symlink_to("usr/lib")  # where Debian 13 has them
    _run("depmod", "-b", str(kernel.root), kernel.version)


def _run(*command: str, cwd: Path | None = None, timeout_s: float = 60) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, timeout=timeout_s)
    except FileNotFoundError:
        raise UnavailableError(f"there is no {command[0]}; run as root: sh tests/rdma/packages.sh") from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{' '.join(command)} took more than {timeout_s:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.strip()][-1:]
        raise UnavailableError(f"{' '.join(command)} failed: {' '.join(said)}") from None
    return done.stdout
