"""Links that fail and come back: packets on them are lost, routes follow later, transfers end."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric.generate import leaf_spine, paper_fabric
from ark.fabric.topology import Fabric
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.outages import LinkEvent
from ark.sim.packet.settings import preset
from ark.sim.results import Outcome
from ark.sim.schemes.catalogue import SchemeOptions, make_scheme
from ark.sim.schemes.scheme import Transfer

PAPER = paper_fabric()
TIMEOUT_NS = 200_000
SETTINGS = replace(preset("simai"), timeout_ns=TIMEOUT_NS)
FAILS_NS, NOTICED_NS = 100_000, 50_000


def transfers(count: int, *, size: int = 4_000_000, every_ns: int = 1_000) -> list[Transfer]:
    return [
        Transfer(n, PAPER.nics[n % 8], PAPER.nics[8 + n % 8], size, n * every_ns, 50_000 + n, 4791)
        for n in range(count)
    ]


def link(fabric: Fabric, source: str, target: str) -> int:
    (found,) = (one.index for one in fabric.links if (one.source, one.target) == (source, target))
    return found


def run(
    scheme: str,
    asked: list[Transfer],
    events: Sequence[LinkEvent],
    reconverge_ns: int | None = NOTICED_NS,
) -> Outcome:
    chosen = make_scheme(scheme, PAPER, SchemeOptions(), transfers=asked, seed=0, engine="packet")
    return PacketEngine(PAPER, asked, chosen, SETTINGS, link_events=events, reconverge_ns=reconverge_ns).run()


def down(spine: int) -> LinkEvent:
    return LinkEvent(FAILS_NS, link(PAPER, "leaf0", f"spine{spine}"), up=False)


def test_flows_go_around_a_link_that_stays_down() -> None:
    asked = transfers(8)
    before = run("ecmp", asked, [])
    hit = [n for n, path in enumerate(before.path) if path == "1"]
    assert hit
    outcome = run("ecmp", asked, [down(1)])
    assert outcome.retransmits is not None
    for n in range(8):
        ways = outcome.path[n].split(">")
        assert ways[0] == before.path[n]
        assert ways[-1] != "1"  # the hash is over three next hops now
        assert outcome.fct_ns[n] < 4_000_000
    assert all(outcome.retransmits[n] > 0 for n in hit)
    # The tail on the link was lost: nothing but the time-out tells, or an ACK that came another way.
    assert max(outcome.fct_ns[n] for n in hit) > NOTICED_NS + FAILS_NS


def test_new_transfers_avoid_it_from_then_on() -> None:
    asked = transfers(60, size=100_000, every_ns=5_000)
    outcome = run("ecmp", asked, [down(1)])
    late = {outcome.path[n] for n, one in enumerate(asked) if one.start_ns > FAILS_NS + NOTICED_NS}
    early = {outcome.path[n] for n, one in enumerate(asked) if one.start_ns < FAILS_NS // 2}
    assert "1" in early
    assert late == {"0", "2", "3"}


def test_the_old_paths_return_with_the_link() -> None:
    asked = transfers(60, size=100_000, every_ns=20_000)
    back = LinkEvent(500_000, link(PAPER, "leaf0", "spine2"), up=True)
    outcome = run("ecmp", asked, [down(2), back])
    whole = run("ecmp", asked, [])
    late = [n for n, one in enumerate(asked) if one.start_ns > 500_000 + NOTICED_NS]
    assert [outcome.path[n] for n in late] == [whole.path[n] for n in late]
    assert "2" in [outcome.path[n] for n in late]


def test_without_convergence_flows_wait_for_the_link() -> None:
    asked = transfers(8)
    back = LinkEvent(3_000_000, link(PAPER, "leaf0", "spine1"), up=True)
    outcome = run("ecmp", asked, [down(1), back], None)
    assert all(
        (path == "1") == (fct > 2_500_000) for path, fct in zip(outcome.path, outcome.fct_ns, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme", ["ark", "letflow", "conga", "drill", "conweave", "spray", "e-ecmp", "hedera"]
)
def test_every_kind_of_scheme_survives_it(scheme: str) -> None:
    asked = transfers(24, size=1_000_000, every_ns=20_000)
    back = LinkEvent(1_000_000, link(PAPER, "leaf0", "spine1"), up=True)
    outcome = run(scheme, asked, [down(1), back])
    assert (outcome.fct_ns > 0).all()
    assert outcome.fct_ns.max() < 5_000_000


def test_a_leaf_that_is_cut_off_waits() -> None:
    fabric = leaf_spine(2, 1, 2)
    asked = [Transfer(0, fabric.nics[0], fabric.nics[2], 1_000_000, 0, 50_000, 4791)]
    uplink = link(fabric, "leaf0", "spine0")
    events = [LinkEvent(20_000, uplink, up=False), LinkEvent(900_000, uplink, up=True)]
    scheme = make_scheme("ecmp", fabric, SchemeOptions(), transfers=asked, seed=0)
    outcome = PacketEngine(
        fabric, asked, scheme, SETTINGS, link_events=events, reconverge_ns=NOTICED_NS
    ).run()
    assert 900_000 < outcome.fct_ns[0] < 2_000_000


def test_pooled_spines_have_no_links_that_could_fail() -> None:
    with pytest.raises(ConfigError, match="ideal has no single links"):
        run("ideal", transfers(1), [down(1)])


@pytest.mark.slow
def test_a_fixed_seed_repeats_an_outage() -> None:
    asked = transfers(16)
    first, second = (run("conweave", asked, [down(3)]).fct_ns for _ in range(2))
    assert np.array_equal(first, second)
