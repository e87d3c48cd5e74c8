"""Which NICs a client means, whatever form its addresses have."""

import pytest

from ark.agent.directory import Directory
from ark.errors import ConfigError
from ark.fabric import load_fabric

FOUR = 'kind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n'
SIX = FOUR + 'addresses = "fd00::1"\n'


@pytest.mark.parametrize(
    ("fabric", "target", "nic"),
    [
        (FOUR, "h1", ""),
        (FOUR, "10.0.0.2", "10.0.0.1"),
        (FOUR, "::ffff:10.0.0.2", "::FFFF:10.0.0.1"),
        (FOUR, "::ffff:a00:2", "0"),
        (SIX, "fd00::2", "fd00::1"),
        (SIX, "FD00:0:0::2", "fd00:0000::0001"),
    ],
)
def test_an_address_may_be_written_in_any_form(fabric: str, target: str, nic: str) -> None:
    made = load_fabric(fabric, "fabric.toml")
    pair = Directory(made, made.host("h0")).pair(target, nic)
    assert (pair.source.name, pair.target.name) == ("h0", "h1")


@pytest.mark.parametrize(
    "target", ["10.0.0.9", "::ffff:10.0.0.1", "::10.0.0.2", "fd00::2", "10.0.0.02", "h1 "]
)
def test_other_targets_are_refused(target: str) -> None:
    made = load_fabric(FOUR, "fabric.toml")
    with pytest.raises(ConfigError):
        Directory(made, made.host("h0")).pair(target, "")
