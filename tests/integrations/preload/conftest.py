import os
from pathlib import Path

import pytest
from tests.integrations.preload import compiled


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of a test run compile; without a compiler these tests are skipped."""
    if compiled.CC is None:
        pytest.skip("needs a C compiler")
    if "PYTEST_XDIST_WORKER" in os.environ:
        return tmp_path_factory.getbasetemp().parent / "preload"  # of this run, common to its processes
    return tmp_path_factory.mktemp("preload")


@pytest.fixture(scope="session")
def library(scratch: Path) -> Path:
    return compiled.library(scratch / "plain")


@pytest.fixture(scope="session")
def sanitized(scratch: Path) -> str:
    """LD_PRELOAD of the library with AddressSanitizer and UndefinedBehaviorSanitizer."""
    runtime = compiled.sanitizer_runtime()
    if runtime is None:
        pytest.skip("needs AddressSanitizer's library: apt-get install libgcc-12-dev")
    return f"{runtime}:{compiled.library(scratch / 'sanitized', *compiled.SANITIZERS)}"


@pytest.fixture(scope="session")
def fakes(scratch: Path) -> dict[str, str]:
    return compiled.fakes(scratch / "fakes")
