from ark.fabric import dual_plane, leaf_spine, load_fabric
from ark.sim.pipes import Pipes

RATE_BPS = 100_000_000_000

CHAIN = """
kind = "links"
host = [{name = "a"}, {name = "b"}, {name = "both"}, {name = "far"}]
switch = [{name = "s0"}, {name = "s1"}, {name = "s2"}, {name = "top"}]
link = [
  {between = ["a", "s0"]},
  {between = ["b", "s1"]},
  {between = ["both", "s0"]},
  {between = ["both", "s1"]},
  {between = ["far", "s2"]},
  {between = ["s0", "top"]},
  {between = ["s1", "top"]},
  {between = ["s2", "top"], rate = "300 Gbit/s"},
]
"""


def test_a_leaf_has_one_pipe_up_and_one_down_of_the_summed_rate() -> None:
    pipes = Pipes(leaf_spine(2, 4, 1, down=("spine3",)))
    assert pipes.rates_bps == [RATE_BPS] * 4 + [3 * RATE_BPS] * 4


def test_pipes_from_nic_to_nic() -> None:
    fabric = leaf_spine(2, 4, 2)
    pipes = Pipes(fabric)
    one, two, other = fabric.nic("h0"), fabric.nic("h1"), fabric.nic("h3")
    assert pipes.between(one, two) == (0, 4 + 1)
    assert pipes.between(one, other) == (0, 8 + 0, 8 + 2 + 1, 4 + 3)


def test_leaves_that_share_a_host_are_one_group_whatever_the_order_of_hosts() -> None:
    fabric = load_fabric(CHAIN, "chain.toml")
    pipes = Pipes(fabric)
    assert pipes.group == [0, 0, 0, 3]
    assert pipes.rates_bps[:8] == [RATE_BPS, RATE_BPS, 2 * RATE_BPS, RATE_BPS] * 2
    nics, groups = 4, 4
    up, down = pipes.rates_bps[2 * nics :][:groups], pipes.rates_bps[2 * nics + groups :]
    assert (up, down) == ([2 * RATE_BPS, 0, 0, 3 * RATE_BPS],) * 2
    assert pipes.between(fabric.nic("b"), fabric.nic("far")) == (1, 8, 8 + 4 + 3, 4 + 3)
    assert pipes.between(fabric.nic("a"), fabric.nic("b")) == (0, 4 + 1)


def test_a_nic_with_several_ports_is_one_pipe_of_those_that_are_up() -> None:
    pipes = Pipes(dual_plane(1, 1, 2, down=(("h0", "tor0"),)))
    assert pipes.rates_bps[:4] == [RATE_BPS, 2 * RATE_BPS] * 2
