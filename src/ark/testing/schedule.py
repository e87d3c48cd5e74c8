"""What happens to a simulated cluster: its transfers and its faults, all from one seed."""

from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from ark.units import NS_PER_S

FAULTY_NS: Final = 3 * NS_PER_S // 2
"""How long faults and arrivals go on, in virtual time. Then all faults end, and the cluster must come to
agree."""

BURSTS: Final = 4
"""Moments at which many transfers arrive at once."""

BURST_NS: Final = 100_000
"""How long such a moment lasts."""

Kind = Literal["loss", "duplicates", "delay", "partition", "one-way", "crash", "step", "clone", "replay"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault between two times.

    Parameters
    ----------
    kind
        ``loss`` and ``duplicates`` (``amount``: share), ``delay`` (``amount``: seconds at most, so datagrams
        overtake each other), ``partition`` and ``one-way`` (``hosts`` cannot reach the rest, or are not
        reached), ``crash`` (``hosts`` restart at the end; with ``amount`` > 0 their disk is lost), ``step``
        (``hosts``' wall clocks jump by ``amount`` seconds and stay), ``clone`` (a host with the id of the
        first of ``hosts`` lives elsewhere), ``replay`` (at its end, recorded datagrams of ``hosts`` arrive
        anew).
    """

    kind: Kind
    start_ns: int
    end_ns: int
    hosts: tuple[int, ...] = ()
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer of a client's: from ``host`` to a NIC under attachment ``target``.

    Parameters
    ----------
    segments
        Times after its start at which a segment ends; the last one is the transfer's end.
    ahead
        It is reserved this long before it starts; 0 for not ahead.
    forgotten
        Its client never says that it is over.
    """

    start_ns: int
    host: int
    target: int
    size_bytes: int
    segments: tuple[int, ...]
    ahead_ns: int = 0
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run of a cluster; equal schedules run equally.

    Parameters
    ----------
    seed
        Of the network, the nonces and the clocks.
    hosts, leaves, spines
        Of the fabric; hosts are dealt to the leaves in turn.
    policy
        ``"ark"`` or ``"paper"``.
    open_membership
        Whether anybody with the key may join, and hosts hear their own multicast; otherwise each host id is
        bound to its address.
    by_leaf
        Whether rows go to the subjects of their leaves instead of one for all.
    """

    seed: int
    hosts: int
    leaves: int
    spines: int
    policy: Literal["ark", "paper"]
    hold_ns: int
    open_membership: bool
    by_leaf: bool
    transfers: tuple[Transfer, ...]
    faults: tuple[Fault, ...]


def random_schedule(seed: int) -> Schedule:
    """The schedule of a seed: up to 6 hosts, 30 transfers and 6 faults in a second and a half.

    Most have 3 hosts: enough for most of what can go wrong, and a third of the datagrams of 5.
    """
    rng = Random(seed)
    (hosts,) = rng.choices((2, 3, 4, 5, 6), (2, 11, 5, 1, 1))
    leaves = rng.randint(2, min(4, hosts))
    policy: Literal["ark", "paper"] = "paper" if rng.random() < 0.4 else "ark"
    open_membership = rng.random() < 0.4
    return Schedule(
        seed=seed,
        hosts=hosts,
        leaves=leaves,
        spines=rng.choice((2, 3, 4, 8)),
        policy=policy,
        hold_ns=rng.choice((0, 0, 1_000_000)),
        open_membership=open_membership,
        by_leaf=policy == "ark" and rng.random() < 0.3,
        transfers=tuple(_transfer(rng, hosts, leaves) for _ in range(rng.randint(1, 30))),
        faults=tuple(_fault(rng, hosts) for _ in range(rng.randint(0, 6))),
    )


def _transfer(rng: Random, hosts: int, leaves: int) -> Transfer:
    host = rng.randrange(hosts)
    target = (host % leaves + rng.randint(1, leaves - 1)) % leaves
    # A third of them last beyond all faults, so that there is something to agree about.
    lasts_ns = rng.choice((5, 50, 500, 1500, 20_000, 20_000)) * rng.randrange(1, 1_000_000)
    ends = sorted({1 + rng.randrange(lasts_ns) for _ in range(rng.randint(0, 3))} | {lasts_ns})
    # Half of them arrive with others, closer together than the network is fast: these race.
    together_ns = rng.randrange(BURSTS) * (FAULTY_NS // BURSTS) + rng.randrange(BURST_NS)
    return Transfer(
        start_ns=together_ns if rng.random() < 0.5 else rng.randrange(FAULTY_NS),
        host=host,
        target=target,
        size_bytes=rng.choice((1, 200_000_000, 500_000_000, 2_000_000_000)),
        segments=tuple(ends),
        ahead_ns=rng.choice((0, 0, 0, 30_000_000)),
        forgotten=rng.random() < 0.03,
    )


def _fault(rng: Random, hosts: int) -> Fault:
    kinds: tuple[Kind, ...] = (
        "loss", "duplicates", "delay", "partition", "one-way", "crash", "crash", "step", "replay", "clone",
    )  # fmt: skip
    kind = rng.choice(kinds[:-1] if rng.random() < 0.8 else kinds)
    start_ns = rng.randrange(FAULTY_NS)
    end_ns = min(FAULTY_NS, start_ns + rng.randrange(1, FAULTY_NS))
    some = tuple(sorted(rng.sample(range(hosts), rng.randint(1, hosts - 1))))
    if kind == "crash":
        return Fault(kind, start_ns, end_ns, some[:2], float(rng.random() < 0.5))
    if kind == "step":
        return Fault(kind, start_ns, end_ns, some, rng.choice((-86_400.0, -5.0, -0.5, 0.5, 5.0, 3_600.0)))
    amounts: dict[Kind, float] = {
        "loss": 0.3 * rng.random(),
        "duplicates": rng.random(),
        "delay": rng.choice((0.001, 0.05, 0.5)),
    }
    return Fault(kind, start_ns, end_ns, some, amounts.get(kind, 0.0))
