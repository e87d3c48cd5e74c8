"""The Python files that the guest will import, in one archive that it unpacks over its view of the host.

File by file through 9p an emulated machine spends most of its time on opening them. What is missing in the
archive is found through 9p all the same.
"""

import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.rdma.kernel import UnavailableError

_LIST: Final = """\
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for module in list(sys.modules.values()):
    for file in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
        if file:
            print(file)
"""


def write_archive(to: Path, *, python: str, modules: Sequence[str], environment: Mapping[str, str]) -> None:
    """Write a tar of all files that importing ``modules`` loads, with their absolute paths.

    Raises
    ------
    UnavailableError
        If they can't be imported on this machine either.
    """
    done = subprocess.run(
        [python, "-c", _LIST, *modules], env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:]
        raise UnavailableError(f"{python} cannot import what the guest needs: {' '.join(said)}")
    files = {Path(line) for line in done.stdout.splitlines()}
    with tarfile.open(to, "w") as archive:
        for file in sorted(file for file in files if file.is_absolute() and file.is_file()):
            archive.add(file, str(file).lstrip("/"))
