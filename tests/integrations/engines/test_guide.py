"""The guide's examples: Python that compiles, names that are there, JSON that is JSON."""

import importlib
import re
from pathlib import Path

import msgspec
import pytest

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "engines.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
SETTINGS = re.findall(r"--kv-transfer-config '(.*?)'", GUIDE, re.DOTALL)


@pytest.mark.parametrize("code", PYTHON)
def test_python(code: str) -> None:
    compile(code, "engines.md", "exec")
    for module, names in re.findall(r"^from (ark[\w.]*) import (.*)$", code, re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_settings() -> None:
    assert len(SETTINGS) == 3
    for text in SETTINGS:
        assert msgspec.json.decode(text)["kv_role"] == "kv_producer"


def test_middleware_and_plug_ins_are_there() -> None:
    (path,) = re.findall(r"--middleware (\S+)", GUIDE)
    module, _, name = path.rpartition(".")
    assert callable(getattr(importlib.import_module(module), name))
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    for target in re.findall(r'^ark = "(ark\.integrations\.\w+:\w+)"$', project, re.MULTILINE):
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))
