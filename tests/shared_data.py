"""Where the traces and reference results lie that are not part of the project; absent on most machines."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """The path of one shared data file or folder, or a skip with the reason where it is absent."""
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"shared/data/{name} is not on this machine (see README for the public files)")
    return path
