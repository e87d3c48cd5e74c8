"""The example shows every key, with its default, and is a configuration that works."""

import re
from pathlib import Path

import msgspec

from ark.agent.config import load_config
from ark.agent.schema import AgentFile
from ark.discover import write_learned

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_is_a_configuration(folder: Path) -> None:
    text = (ROOT / "examples" / "agent.toml").read_text()
    (folder / "paper.toml").write_text((ROOT / "examples" / "paper.toml").read_text())
    path = folder / "agent.toml"
    path.write_text(text)
    config = load_config(path)
    path.write_text('fabric = "paper.toml"\nkey_file = "cluster.key"\nhost = "h0"\n')
    defaults = load_config(path)
    for name in ("peers", "bind", "group", "policy", "lease_ns", "receive_buffer_bytes", "socket", "metrics"):
        assert getattr(config, name) == getattr(defaults, name), name
    (folder / "paths.json").write_text(write_learned([], "fabric"))
    path.write_text(
        re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE).replace('"inference"', '"root"')
    )
    changed = load_config(path)
    assert list(changed.peers) == ["h1", "h2"]
    assert changed.metrics == ("127.0.0.1", 9471)


def test_the_example_shows_every_key() -> None:
    text = (ROOT / "examples" / "agent.toml").read_text()
    for field in msgspec.structs.fields(AgentFile):
        assert re.search(rf"^(# )?\[?{field.name}\b", text, re.MULTILINE), field.name
        if isinstance(field.default, msgspec.Struct):
            for inner in msgspec.structs.fields(type(field.default)):
                key = (
                    rf"\[{field.name}\.{inner.name}\]"
                    if isinstance(inner.default, msgspec.Struct)
                    else f"{inner.name} = "
                )
                assert re.search(rf"^(# )?{key}", text, re.MULTILINE), inner.name
