"""The interpreter that the guest runs: Debian's own, for which pyverbs is built; and its modules."""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.rdma.kernel import UnavailableError

PYTHON: Final = "/usr/bin/python3"
ROOT: Final = Path(__file__).resolve().parents[2]
_INSTALL_TIMEOUT_S: Final = 300


def module_folders(cache: Path) -> list[Path]:
    """Folders for ``PYTHONPATH``: the checkout and the packages that it needs, built for that interpreter.

    Raises
    ------
    UnavailableError
        If the packages can't be had for it.
    """
    return [ROOT, ROOT / "src", packages_for(_version(), cache)]


def packages_for(version: str, cache: Path) -> Path:
    """The folder of packages for an interpreter: this one's if the version is the same, else its own."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sysconfig.get_paths()["platlib"])
    folder = cache / f"packages-{version}"
    if not (folder / "ibverbs").is_dir():
        uv = Path(sys.executable).with_name("uv")
        wanted = _run(
            str(uv), "export", "--locked", "--quiet", "--no-hashes", "--no-emit-project", "--no-dev"
        )
        requirements = cache / "requirements.txt"
        requirements.write_text(f"{wanted}\nibverbs\n")
        _run(
            *(str(uv), "pip", "install", "--quiet", "--python", PYTHON),
            *("--target", str(folder), "-r", str(requirements)),
        )
    return folder


def _version() -> str:
    return _run(PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=_INSTALL_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()[-1:]
        raise UnavailableError(f"{' '.join(command)} failed: {' '.join(said)}") from None
    return done.stdout
