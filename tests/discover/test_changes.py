"""A map that stops being true on a real fabric: a lost spine, new seeds, and what Linux itself says."""

import subprocess
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.discover.live_fabric import assert_exact, discovered, linux_hash, running

from ark.cli.discover_watch import watches_of
from ark.discover.learned import learned_map
from ark.discover.live import RawSockets, keep_watch
from ark.discover.numbering import FabricNumbering
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.route_get import questions, read_answers
from ark.discover.watch import State, Watch
from ark.fabric import Fabric, leaf_spine, route_ports
from ark.lab.clos import Clos

pytestmark = pytest.mark.slow

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def made() -> Iterator[Clos]:
    with running(leaf_spine(2, 4, 1, hash=linux_hash()), seed=11) as built:
        yield built


def watch_of(made: Clos, fabric: Fabric) -> Watch:
    source, target = made.fabric.nics
    (finding,) = discovered(made, [(source, target)], per_path=6, ports=range(49_152, 65_536))
    numbering = FabricNumbering(fabric)
    one = learned_map(finding, source=source.name, target=target.name, numbering=numbering)
    (watch,) = watches_of([one], made.addresses, numbering, now=time.monotonic_ns(), interval_ns=50_000_000)
    return watch


def keep(made: Clos, watch: Watch, until: Callable[[], bool]) -> list[str]:
    """The news until something is true; gives up after a patience that only a broken watch needs."""
    news: list[str] = []
    end = time.monotonic() + PATIENCE_S
    with made.inside("h0"):
        sockets = RawSockets(made.version)
    with sockets:
        prober = Prober([], nonce=0x654321)
        keep_watch(
            [watch],
            prober,
            sockets,
            until=lambda: until() or time.monotonic() > end,
            on_news=lambda _, what: news.append(what),
        )
    assert until(), news
    watch.check()
    return news


def exact_ports(made: Clos, watch: Watch) -> None:
    source, target = made.fabric.nics
    model = made.as_running()
    for path in watch.learned.paths:
        if not path.ports:
            continue
        ports = np.array(path.ports)
        assert set(route_ports(model, source, target, ports).tolist()) == {path.path}


def test_a_lost_spine_and_its_return_are_noticed_and_the_map_learned_anew(made: Clos) -> None:
    before = made.as_running()
    watch = watch_of(made, before)
    assert [path.path for path in watch.learned.paths] == [0, 1, 2, 3]
    seed = before.switches[0].hash.seed
    lost = leaf_spine(2, 4, 1, hash=linux_hash(seed=seed), down=("spine1",))
    made.apply(lost)
    try:
        news = keep(made, watch, lambda: watch.epoch == 2 and watch.state is State.VALID)
        assert any(line.startswith("stale:") for line in news)
        assert [path.path for path in watch.learned.paths if path.ports] == [0, 2, 3]
        assert watch.ports(1) == ()
        exact_ports(made, watch)
        made.apply(before)
        keep(made, watch, lambda: watch.epoch == 3 and watch.state is State.VALID)
        assert [path.path for path in watch.learned.paths] == [0, 1, 2, 3]
        exact_ports(made, watch)
    finally:
        made.apply(before)


def test_a_new_seed_is_noticed(made: Clos) -> None:
    before = made.as_running()
    watch = watch_of(made, before)
    made.write_sysctl("leaf0", ipv4__fib_multipath_hash_seed=424_242)
    try:
        news = keep(made, watch, lambda: watch.epoch == 2 and watch.state is State.VALID)
        assert "new seed, or group resized" in " ".join(news)
        exact_ports(made, watch)
    finally:
        made.apply(before)


def test_counters_that_disagree_start_a_check_that_clears_the_suspicion(made: Clos) -> None:
    watch = watch_of(made, made.fabric)
    watch.counted(2, expected_bytes=1_000_000, counted_bytes=10_000, now=time.monotonic_ns())
    assert watch.state is State.SUSPECT
    assert watch.ports(2) == ()  # transfers go unsteered meanwhile
    news = keep(made, watch, lambda: watch.state is State.VALID)
    assert news[:2] == ["suspect: path 2 counted 1% of a transfer's bytes", "all paths are as learned"]
    assert watch.epoch == 1
    assert watch.ports(2)


def test_route_get_on_the_leaf_says_what_probes_say(made: Clos) -> None:
    source, target = made.fabric.nics
    ports = range(50_000, 50_500)
    (probed,) = discovered(made, [(source, target)], ports=ports)
    flow = Flow(source.address, target.address, 17, 0, 4791)
    printed = subprocess.run(
        ["ip", "-n", made.namespace("leaf0"), "-batch", "-"],
        input=questions(flow, ports, interface="h0"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    asked = read_answers(printed, flow, ports, switch="leaf0", names=made.addresses)
    assert asked.ports == probed.ports
    assert_exact(made, probed, source, target)
