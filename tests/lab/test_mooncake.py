"""Mooncake's unmodified engine in the lab, where it is installed; and what is said where it is not."""

import importlib.util
import os
from pathlib import Path

import msgspec
import pytest

from ark.errors import LabError
from ark.fabric import leaf_spine
from ark.integrations.preload import LIBRARY
from ark.lab import mooncake
from ark.lab.lab import lab
from ark.lab.mooncake import Moved, move, require
from ark.lab.mooncake_mover import Check, Write, answers, commands
from ark.lab.scaled import scaled


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(LabError, match="run: pip install mooncake-transfer-engine-non-cuda"):
        require()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(mooncake, "LIBRARY", Path("/nowhere/libark_run.so"))
    with pytest.raises(LabError, match="with a C compiler run"):
        require()


def test_only_right_bytes_on_the_chosen_path_hold() -> None:
    good = Moved(0, "h0", "h8", 2, 0.9998, right=True)
    assert good.held
    for bad in (
        Moved(0, "h0", "h8", None, 0.9998, right=True),
        Moved(0, "h0", "h8", 2, 0.98, right=True),
        Moved(0, "h0", "h8", 2, 0.9998, right=False),
    ):
        assert not bad.held


def test_orders_come_back_and_garbage_does_not() -> None:
    for order in (Write(1, "10.0.0.1:99", 12345, 10), Check(10)):
        assert commands.decode(msgspec.json.encode(order)) == order
    for garbage in (b"", b"{}", b'{"type":"write"}', b"\xff", b"[]"):
        with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
            answers.decode(garbage)


@pytest.mark.slow
def test_writes_take_the_path_that_was_chosen() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root and network namespaces")
    if importlib.util.find_spec("mooncake") is None:
        pytest.skip("needs mooncake-transfer-engine-non-cuda")
    if not LIBRARY.exists():
        pytest.skip("the preload library is not built: python -m ark.integrations.preload")
    fabric = scaled(leaf_spine(2, 2, 1), 10**9, hash_seed=5).lab
    with lab(fabric, name=f"ark-lab.mooncake{os.getpid()}") as built:
        built.agents.start("ark")
        built.agents.wait()
        assert all(one.held for one in move(built, 4, seed=0))
