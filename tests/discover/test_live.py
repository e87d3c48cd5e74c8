"""Discovery on real kernels that forward real packets, without being told their seeds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.discover.live_fabric import assert_exact, discovered, linux_hash, running

from ark.discover.learned import read_learned
from ark.fabric import TCP, Influence, fat_tree, leaf_spine, path_map, to_toml
from ark.lab.clos import Clos

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_tiers() -> Iterator[Clos]:
    with running(leaf_spine(2, 4, 2, hash=linux_hash()), seed=1) as made:
        yield made


@pytest.mark.parametrize("proto", [17, TCP])
def test_every_port_takes_the_path_that_was_learned(two_tiers: Clos, proto: int) -> None:
    """500 of 500 ports of UDP and of TCP."""
    source, _, target, _ = two_tiers.fabric.nics
    (finding,) = discovered(two_tiers, [(source, target)], proto=proto)
    assert len(finding.ports) == 500
    assert finding.influence is Influence.PORT
    assert finding.varying == (2,)
    assert_exact(two_tiers, finding, source, target, proto=proto)


def test_unequal_weights(two_tiers: Clos) -> None:
    weights = {"spine0": 1, "spine1": 2, "spine2": 3, "spine3": 10}
    before = two_tiers.as_running()
    seeds = [switch.hash.seed for switch in before.switches]
    two_tiers.apply(leaf_spine(2, 4, 2, hash=linux_hash(weights=weights, seed=seeds[0])))
    try:
        source, _, target, _ = two_tiers.fabric.nics
        (finding,) = discovered(two_tiers, [(source, target)])
        assert len(finding.ports) == 500
        assert_exact(two_tiers, finding, source, target)
        counts = [sum(f == (f"spine{k}",) for f in finding.ports.values()) for k in range(4)]
        assert counts == sorted(counts), counts
    finally:
        two_tiers.apply(before)


def test_only_as_many_ports_as_each_path_needs(two_tiers: Clos) -> None:
    """Where the number of paths is known, a search ends as soon as each has its ports; peers in parallel."""
    source, _, *targets = two_tiers.fabric.nics
    options: dict[str, object] = {"per_path": 4, "paths": 4, "switches": 3, "ports": range(49_152, 65_536)}
    findings = discovered(two_tiers, [(source, target) for target in targets], **options)
    for finding, target in zip(findings, targets, strict=True):
        assert_exact(two_tiers, finding, source, target)
        counts = [list(finding.ports.values()).count((f"spine{k}",)) for k in range(4)]
        assert min(counts) >= 4
        assert len(finding.ports) < 80


def test_one_leaf_has_one_path(two_tiers: Clos) -> None:
    source, neighbour, *_ = two_tiers.fabric.nics
    (finding,) = discovered(two_tiers, [(source, neighbour)], per_path=4)
    assert finding.influence is Influence.ONE_PATH
    assert finding.hops == ("leaf0",)


def test_addresses_that_decide_alone_are_recognised(two_tiers: Clos) -> None:
    """Policy 3 that hashes only addresses: all ports take one path, and several paths are known to exist."""
    before = two_tiers.as_running()
    two_tiers.apply(leaf_spine(2, 4, 2, hash=linux_hash(fields=("src", "dst"))))
    try:
        source, _, target, _ = two_tiers.fabric.nics
        (finding,) = discovered(two_tiers, [(source, target)], per_path=4, paths=4)
        assert finding.influence is Influence.NOT_HASHED
        assert "4 paths" in finding.reason
    finally:
        two_tiers.apply(before)


def test_limited_icmp_is_met_with_patience(two_tiers: Clos) -> None:
    """Linux's own limit is on: a burst of six errors a switch, then one in 50 ms (by default a second)."""
    for switch in two_tiers.fabric.switches:
        two_tiers.write_sysctl(switch.name, ipv4__icmp_ratelimit=50)
    try:
        source, _, target, _ = two_tiers.fabric.nics
        (finding,) = discovered(two_tiers, [(source, target)], per_path=3, paths=4)
        assert len(set(finding.ports.values())) == 4
        assert_exact(two_tiers, finding, source, target)
    finally:
        for switch in two_tiers.fabric.switches:
            two_tiers.write_sysctl(switch.name, ipv4__icmp_ratelimit=0)


def test_ipv6() -> None:
    with running(leaf_spine(2, 4, 1, hash=linux_hash(), addresses="fd00:1::1"), seed=6) as made:
        source, target = made.fabric.nics
        (finding,) = discovered(made, [(source, target)])
        assert len(finding.ports) == 500
        assert_exact(made, finding, source, target)


def test_three_tiers() -> None:
    """Three decisions of three switches with three seeds: the switches at three distances name the path."""
    with running(fat_tree(4, pods=2, hosts_per_leaf=1, hash=linux_hash()), seed=3) as made:
        source, target = made.fabric.nics[0], made.fabric.nics[-1]
        (finding,) = discovered(made, [(source, target)])
        assert len(finding.ports) == 500
        assert len(set(finding.ports.values())) == 4
        assert finding.varying == (2, 3, 4)
        assert_exact(made, finding, source, target)


NOBODY: Final = ("setpriv", "--reuid", "65534", "--clear-groups")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may write to (pytest's own are for the one who runs it)."""
    seen = subprocess.run([*NOBODY, sys.executable, "-c", "import ark"], capture_output=True, check=False)
    if seen.returncode:
        pytest.skip("the user nobody cannot read this checkout or its Python")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_the_command_with_cap_net_raw_alone(two_tiers: Clos, open_folder: Path) -> None:
    """As nobody with one capability; what it prints and writes is what the model with the true seeds says."""
    fabric, names, out = (open_folder / name for name in ("fabric.toml", "names.csv", "paths.json"))
    fabric.write_text(to_toml(two_tiers.fabric), "utf-8")
    lines = [f"{address},{switch}" for address, switch in two_tiers.addresses.items()]
    names.write_text("\n".join(["address,switch", *lines]), "utf-8")
    nobody = [*NOBODY, "--inh-caps", "+net_raw", "--ambient-caps", "+net_raw"]
    command = [sys.executable, "-m", "ark.cli.main", "discover", "h2", "--from", "h0", "--json"]
    files = ["--fabric", str(fabric), "--names", str(names), "--out", str(out)]
    inside = ["ip", "netns", "exec", two_tiers.namespace("h0")]
    done = subprocess.run([*inside, *nobody, *command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (learned,) = read_learned(out.read_text("utf-8"), "paths.json").maps
    (result,) = json.loads(done.stdout)["results"]
    model = two_tiers.as_running()
    ends = model.nic("h0"), model.nic("h2")
    assert [path["path"] for path in result["paths"]] == [0, 1, 2, 3]
    for path in result["paths"]:
        assert path["hops"] == ["leaf0", f"spine{path['path']}", "leaf1"]
        assert path["count"] >= 4
        assert path_map(model, *ends, ports=path["ports"]).count(path["path"]) == path["count"]
        assert learned.path_map().ports(path["path"]) == tuple(path["ports"][:16])


@pytest.mark.usefixtures("open_folder")
def test_without_the_capability_the_message_says_how_to_get_it(two_tiers: Clos) -> None:
    inside = ["ip", "netns", "exec", two_tiers.namespace("h0")]
    command = [sys.executable, "-m", "ark.cli.main", "discover", "10.0.0.3"]
    done = subprocess.run([*inside, *NOBODY, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ark: probing needs the capability CAP_NET_RAW")
    assert "setcap cap_net_raw+ep" in done.stderr
