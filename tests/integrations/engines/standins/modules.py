"""Modules of stand-ins under the names of the real ones."""

import sys
from types import ModuleType
from typing import Any

import pytest


def put(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> ModuleType:
    """Let ``import name`` find a module with this content, and its packages, until the test ends."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        package = ".".join(parts[:length])
        if package not in sys.modules:
            made = ModuleType(package)
            made.__path__ = []
            monkeypatch.setitem(sys.modules, package, made)
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
    if len(parts) > 1:
        monkeypatch.setattr(sys.modules[name.rpartition(".")[0]], parts[-1], module, raising=False)
    return module


def forget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the next ``import name`` load the module anew."""
    monkeypatch.delitem(sys.modules, name, raising=False)
    package = sys.modules.get(name.rpartition(".")[0])
    if package is not None:
        monkeypatch.delattr(package, name.rpartition(".")[2], raising=False)
