"""Hashes told from learned ports, against fabrics whose hashes are known."""

from collections.abc import Sequence

import numpy as np
import pytest

from ark.cli.discover import spread
from ark.discover.infer import Inferred, infer
from ark.discover.learned import LearnedMap, LearnedPath
from ark.discover.model import agreement, predicted
from ark.discover.observations import header_of_ports, observations
from ark.discover.offsets import fit_offsets
from ark.discover.relative import by_offsets
from ark.errors import ConfigError
from ark.fabric import Fabric, HashSpec, fat_tree, leaf_spine, route_ports
from ark.fabric.hash_spec import HashFunction

ALL = np.arange(0xC000, 0x1_0000, dtype=np.uint32)


def learned_from(fabric: Fabric, source: str, target: str, ports: Sequence[int]) -> LearnedMap:
    """A map as discovery would learn it, but from the model."""
    a, b = fabric.nic(source), fabric.nic(target)
    routed = route_ports(fabric, a, b, np.array(ports, dtype=np.uint32))
    paths = [
        LearnedPath(
            path.index,
            tuple(fabric.links[link].source for link in path.links[1:]),
            tuple(int(port) for port, index in zip(ports, routed, strict=True) if index == path.index),
        )
        for path in fabric.paths(a, b)
    ]
    return LearnedMap(
        source, target, a.address, b.address, 17, 4791, "port", "by the model", tuple(paths), "probes"
    )


def some_ports(count: int, seed: int = 1) -> list[int]:
    return sorted(np.random.default_rng(seed).choice(ALL, count, replace=False).tolist())


def inferred(spec: HashSpec, spines: int = 4, ports: int = 300, **options: object) -> list[Inferred]:
    fabric = leaf_spine(2, spines, 3, hash=spec, **options)  # type: ignore[arg-type]
    maps = [learned_from(fabric, "h0", target, some_ports(ports // 2)) for target in ("h3", "h4")]
    (seen,) = observations(maps)
    assert seen.switch == "leaf0"
    return infer(seen, seeds=(0, 3, 5, 9, 17))


def agrees(found: Inferred, spec: HashSpec, spines: int = 4, **options: object) -> float:
    """Share of all RoCE ports of a pair that was not learned for which the inferred hash is right."""
    fabric = leaf_spine(2, spines, 3, hash=spec, **options)  # type: ignore[arg-type]
    other = learned_from(fabric, "h1", "h5", ALL.tolist())
    names = np.array([path.hops[1] for path in other.paths])
    truth = route_ports(fabric, fabric.nic("h1"), fabric.nic("h5"), ALL)
    said = np.array([*found.neighbours, "?"])[found.choose(header_of_ports(other, ALL))]
    return float((said == names[truth]).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    ["murmur3", "crc16-arc", "crc32-high16", "xor8", "toeplitz"],
)
def test_function_fields_and_seed_are_told(function: HashFunction) -> None:
    """Even where another candidate is the same function of the port, all ports of another pair are right."""
    spec = HashSpec(function=function, fields=("src", "dst", "sport", "dport"), seed=9)
    best = inferred(spec, spines=3)[0]
    assert best.evidence_bits > 300
    assert agrees(best, spec, spines=3) == 1.0
    if function == "murmur3":
        assert best.describe() == "murmur3 of src, dst, sport, dport; seed 9; modulo 3"


@pytest.mark.slow
@pytest.mark.parametrize("policy", [1, 3])
def test_linux_with_a_seed_that_is_tried(policy: int) -> None:
    spec = HashSpec(function="linux", seed=17, selection="thresholds", policy=policy)  # type: ignore[arg-type]
    (best,) = inferred(spec)
    assert (best.spec.function, best.spec.seed, best.spec.policy) == ("linux", 17, policy)
    assert agrees(best, spec) > 0.98  # only hashes in the gap between two probes can be wrong


@pytest.mark.slow
def test_a_random_seed_of_linux_is_not_guessed() -> None:
    spec = HashSpec(function="linux", seed=0x9E37_79B9, selection="thresholds")
    assert inferred(spec) == []


@pytest.mark.slow
def test_weights_and_resilient_tables_need_not_be_known() -> None:
    weighted = HashSpec(weights={"spine0": 3, "spine2": 2}, seed=5)
    best = inferred(weighted)[0]
    assert (best.spec.function, best.modulus) == ("murmur3", 7)
    assert agrees(best, weighted) == 1.0
    resilient = HashSpec(selection="resilient", buckets=32, seed=5)
    best = inferred(resilient)[0]
    assert (best.spec.function, best.modulus) == ("murmur3", 32)
    assert agrees(best, resilient) == 1.0


@pytest.mark.slow
def test_each_switch_of_three_tiers_is_told() -> None:
    fabric = fat_tree(4, hash=HashSpec())  # seeds are the switches' numbers
    target = fabric.nics[-1].name
    seen = observations([learned_from(fabric, "h0", target, some_ports(400))])
    assert [one.switch for one in seen] == ["agg0", "agg1", "leaf0"]
    for one in seen:
        best = infer(one, seeds=map(fabric.node_id, ("agg0", "agg1", "leaf0")))[0]
        assert best.spec.function == "murmur3"
        assert best.spec.seed == fabric.node_id(one.switch)


def test_too_few_ports_are_refused() -> None:
    with pytest.raises(ConfigError, match="tell too little"):
        inferred(HashSpec(), ports=40)


@pytest.mark.parametrize("function", ["crc16-ccitt", "crc32", "crc32c", "xor8", "xor16", "toeplitz"])
@pytest.mark.parametrize("spines", [2, 4, 8])
def test_one_base_probe_a_pair(function: HashFunction, spines: int) -> None:
    """The offsets of one pair and one probe of another give all ports of the other."""
    spec = HashSpec(function=function, fields=("src", "dst", "sport", "dport"), seed=3)
    fabric = leaf_spine(2, spines, 3, hash=spec)
    first, other = (learned_from(fabric, *pair, ALL.tolist()) for pair in (("h0", "h3"), ("h2", "h5")))
    truth = {port: path.path for path in other.paths for port in path.ports}
    known = {port: path.path for path in first.paths for port in path.ports}
    offsets = fit_offsets({port: known[port] for port in some_ports(150)})
    if len(set(known.values())) < spines:
        pytest.skip("this hash reaches only some of the paths by the port")
    assert offsets is not None
    base = 60_000
    said = [offsets.path_of(int(p), base_port=base, base_path=truth[base]) for p in ALL]
    assert said == [truth[int(port)] for port in ALL]


def test_three_ports_of_a_pair_tell_all_others() -> None:
    spec = HashSpec(function="crc32", seed=3)
    fabric = leaf_spine(2, 4, 3, hash=spec)
    whole = learned_from(fabric, "h0", "h3", some_ports(200))
    probed = learned_from(fabric, "h1", "h5", [50_000, 60_000, 61_234])
    found = by_offsets(whole, probed, ALL.tolist())
    assert agreement(found, fabric) == (len(ALL), len(ALL))
    assert found.method == "offsets"
    wrong = learned_from(leaf_spine(2, 4, 3, hash=HashSpec(seed=1)), "h1", "h5", some_ports(8))
    with pytest.raises(ConfigError, match="does not follow from h0 to h3; discover it without --like"):
        by_offsets(whole, wrong, ALL.tolist())
    murmur = learned_from(leaf_spine(2, 4, 3), "h0", "h3", some_ports(200))
    with pytest.raises(ConfigError, match="is not linear in the port"):
        by_offsets(murmur, probed, ALL.tolist())


def test_inferred_hashes_give_every_port_of_a_pair() -> None:
    fabric = leaf_spine(2, 4, 1, hash=HashSpec(seed=5))
    one = learned_from(fabric, "h0", "h1", some_ports(200))
    (seen,) = observations([one])
    found = predicted(one, {"leaf0": infer(seen, seeds=[5])[0]}, ALL)
    assert agreement(found, fabric) == (len(ALL), len(ALL))
    assert found.method == "model"
    with pytest.raises(ConfigError, match="the hash of leaf0 is not known"):
        predicted(one, {}, ALL)


def test_a_fabric_file_with_another_hash_is_told() -> None:
    one = learned_from(leaf_spine(2, 4, 1, hash=HashSpec(seed=5)), "h0", "h1", some_ports(200))
    right, asked = agreement(one, leaf_spine(2, 4, 1, hash=HashSpec(seed=6)))
    assert asked == 200
    assert right < 100


@pytest.mark.parametrize("number", [1, 9_973, 9_967, 16_384, 65_536, 5 * 9_973])
def test_ports_are_tried_each_once(number: int) -> None:
    assert sorted(spread(range(number))) == list(range(number))


@pytest.mark.parametrize(
    "spec",
    [
        HashSpec(),
        HashSpec(function="linux", seed=4, selection="thresholds"),
        HashSpec(function="crc32", seed=4, weights={"spine0": 2}),
    ],
    ids=["murmur", "linux", "weighted crc"],
)
def test_offsets_are_refused_where_the_hash_is_not_affine(spec: HashSpec) -> None:
    fabric = leaf_spine(2, 4, 1, hash=spec)
    one = learned_from(fabric, "h0", "h1", some_ports(300))
    assert fit_offsets({port: path.path for path in one.paths for port in path.ports}) is None
