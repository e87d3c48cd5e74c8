"""The engines' wheels, where ``make test-contracts`` has downloaded them."""

import os
from pathlib import Path

import pytest
from tests.contracts.wheels import Wheel, newest
from tests.integrations.engines.conftest import four, run_log, watched

__all__ = ["four", "run_log", "watched"]

FOLDER = "ARK_WHEELS"

# Without wheels all would be skipped for one reason: test_versions.py says it for them.
collect_ignore_glob = [] if os.environ.get(FOLDER) else ["test_[!v]*.py", "test_vllm.py"]


def wheel(distribution: str) -> Wheel:
    """The newest wheel of an engine; the test is skipped where there is none."""
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip("the engines' wheels are large: make test-contracts downloads and reads them")
    found = newest(Path(folder), distribution)
    if found is None:
        pytest.skip(f"no wheel of {distribution} could be had for this machine")
    return found


@pytest.fixture(scope="session")
def vllm() -> Wheel:
    return wheel("vllm")


@pytest.fixture(scope="session")
def sglang() -> Wheel:
    return wheel("sglang")


@pytest.fixture(scope="session")
def lmcache() -> Wheel:
    return wheel("lmcache")


@pytest.fixture(scope="session")
def nixl() -> Wheel:
    return wheel("nixl-cu12")


@pytest.fixture(scope="session")
def mooncake() -> Wheel:
    return wheel("mooncake-transfer-engine-non-cuda")


@pytest.fixture(scope="session")
def dynamo() -> Wheel:
    return wheel("ai-dynamo")
