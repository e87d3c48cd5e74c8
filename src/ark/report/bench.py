"""What ARK costs on this machine: decisions, path maps, both engines, and a running agent's answers.

Times are the best of a few rounds by the clock that is passed in, CPU time of this process if none is: what
else the machine does lengthens a round and never shortens it. Only the agent's answers are wall time, since
two processes share that work. Nothing is judged: for gates there is ``benchmarks/`` in the sources.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ark.client import Client
from ark.client.session import NO_AGENT
from ark.control.decider import Decider
from ark.control.policy import Policy
from ark.control.rows import Row, State
from ark.control.view import view
from ark.errors import AgentUnavailable
from ark.fabric import Fabric, leaf_spine, paper_fabric, path_map
from ark.sim.experiment import Experiment
from ark.sim.flow.engine import FlowEngine
from ark.sim.offered import transfers_of
from ark.sim.packet.engine import PacketEngine
from ark.sim.schemes.catalogue import make_scheme
from ark.sim.schemes.scheme import Transfer
from ark.sim.traffic import PresetWorkload, make_traffic

Clock = Callable[[], float]
"""Seconds since any moment."""

ROUNDS: Final = 5
DECISIONS: Final = 1000
PAIRS: Final = 2000
PAIR_BYTES: Final = 10**9
"""Long enough for the usual policy (10 ms at up to 800 Gbit/s): a shorter transfer gets no decision."""

PEERS_TRIED: Final = 64
"""Peers that are asked for once, to find one that more than one path leads to."""

FLOW_REQUESTS: Final = 1000
PACKET_REQUESTS: Final = 100
PACKET_SCALE: Final = 50.0
QPS: Final = 25.0

_SIZE_BYTES: Final = 10**9
_RATE_BPS: Final = 10**11
_DPORT: Final = 4791


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number: ``count`` pieces of work a round, of which the best of ``rounds`` counts."""

    name: str
    what: str
    value: float
    unit: str
    count: int
    rounds: int


def best_s(make: Callable[[], Callable[[], object]], *, rounds: int, clock: Clock) -> float:
    """The least time of what ``make`` returns; making it anew before each round is not measured."""
    best = float("inf")
    for _ in range(rounds):
        run = make()
        begun = clock()
        run()
        best = min(best, clock() - begun)
    return best


def measure(
    *,
    clock: Clock = time.process_time,
    rounds: int = ROUNDS,
    flow_requests: int = FLOW_REQUESTS,
    packet_requests: int = PACKET_REQUESTS,
) -> Iterator[Figure]:
    """All figures that need no agent, one after the other; about ten seconds once kernels are compiled."""
    for paths in (4, 1000):
        yield decision(paths, rounds=rounds, clock=clock)
    for peers in (1, 15):
        yield maps(peers, rounds=rounds, clock=clock)
    yield flow_engine(flow_requests, rounds=rounds, clock=clock)
    yield packet_engine(packet_requests, rounds=rounds, clock=clock)


def decision(paths: int, *, rounds: int, clock: Clock) -> Figure:
    """Acquire + release under ``ark`` while others hold all paths but the last."""
    policy = Policy(name="ark", line_rate_bps=_RATE_BPS, hold_ns=0, min_bytes=0)
    known = view(policy, leaf_spine(2, paths, 1), measured=False)
    for path in range(paths - 1):
        known.table.put(Row(path + 1, 0, 1, 0, State.ACTIVE, (path,), 0, 1, _SIZE_BYTES, path))
    decider = Decider(0, 0, policy=policy, view=known, history=0)

    def run() -> None:
        for flow in range(DECISIONS):
            decider.flow_arrived(flow, 10**6 + flow, flow, 0, 1, _SIZE_BYTES)
            decider.flow_completed(flow, flow)

    took_s = best_s(lambda: run, rounds=rounds, clock=clock)
    what = f"decision, acquire + release, {paths} paths"
    return Figure(f"decision_k{paths}", what, took_s / DECISIONS * 1e6, "us", DECISIONS, rounds)


def maps(peers: int, *, rounds: int, clock: Clock) -> Figure:
    """Port to path maps from the paper's first host to so many others, the farthest first."""
    fabric = paper_fabric()
    source, *others = fabric.nics
    targets = others[-peers:]

    def run() -> None:
        for target in targets:
            path_map(fabric, source, target, dport=_DPORT)

    took_s = best_s(lambda: run, rounds=rounds, clock=clock)
    one = len(targets) == 1
    name, whom = ("path_map_pair", "one host pair") if one else ("path_map_all_peers", "all peers of a host")
    return Figure(name, f"path map, RoCE ports, {whom}", took_s * 1e3, "ms", len(targets), rounds)


def flow_engine(requests: int, *, rounds: int, clock: Clock) -> Figure:
    """Transfers a second of the flow engine on the paper's point, under ``ark``."""
    experiment = Experiment()
    fabric, transfers = _offered(experiment, requests, scale=1.0)

    def make() -> Callable[[], object]:
        scheme = make_scheme("ark", fabric, experiment.options, transfers=transfers, seed=0)
        return FlowEngine(fabric, transfers, scheme, experiment.flow_model).run

    make()()  # compiles, unmeasured
    took_s = best_s(make, rounds=rounds, clock=clock)
    what = f"flow engine, the paper's point, QPS {QPS:g}"
    return Figure("flow_engine", what, len(transfers) / took_s, "transfers/s", len(transfers), rounds)


def packet_engine(requests: int, *, rounds: int, clock: Clock) -> Figure:
    """Data packets a second of the packet engine on the paper's fabric, sizes and times divided by 50."""
    experiment = Experiment(engine="packet", scale=PACKET_SCALE)
    fabric, transfers = _offered(experiment, requests, scale=PACKET_SCALE)

    def engine() -> PacketEngine:
        scheme = make_scheme("ecmp", fabric, experiment.options, transfers=transfers, seed=0, engine="packet")
        return PacketEngine(fabric, transfers, scheme, experiment.packet)

    first = engine()
    first.run()  # compiles, unmeasured
    simulation = first.simulation
    packets = int(simulation.world.flows["sent_packets"][: simulation.flows].sum())
    took_s = best_s(lambda: engine().run, rounds=rounds, clock=clock)
    what = f"packet engine, the paper's fabric, {experiment.packet.payload_bytes} B"
    return Figure("packet_engine", what, packets / took_s, "packets/s", packets, rounds)


def _offered(experiment: Experiment, requests: int, *, scale: float) -> tuple[Fabric, list[Transfer]]:
    traffic = make_traffic(
        PresetWorkload(requests=requests),
        experiment.fabric,
        qps=QPS,
        seed=0,
        kv=experiment.kv,
        latency=experiment.latency,
        ttft="additive",
        layers=1,
        scale=scale,
    )
    return experiment.fabric, transfers_of(traffic.flows, experiment.fabric)


def agent_pairs(
    client: Client, *, pairs: int = PAIRS, clock: Clock = time.perf_counter
) -> tuple[Figure, ...]:
    """Median and p99 of acquire + release over an agent's socket, to a peer between paths if there is one.

    The text of each figure says what the answers were: "unmanaged" ones cost no decision.

    Raises
    ------
    AgentUnavailable
        If no agent answers, it stops answering, or it knows no peer.
    """
    found = client.status("peers")["results"]
    assert isinstance(found, list)
    if not found:
        raise AgentUnavailable("the agent knows no peer to which a transfer could go")
    found.sort(key=lambda row: not row["live"])
    target, kind = _target(client, [str(row["host"]) for row in found[:PEERS_TRIED]])
    taken_s = []
    for _ in range(pairs):
        begun = clock()
        with client.transfer(target, PAIR_BYTES, dport=_DPORT) as transfer:
            if transfer.reason == NO_AGENT:
                raise AgentUnavailable("the agent stopped answering during the measurement")
        taken_s.append(clock() - begun)
    return tuple(
        Figure(
            f"agent_{name}",
            f"agent, acquire + release to {target} ({kind}), {name}",
            value * 1e6,
            "us",
            pairs,
            1,
        )
        for name, value in (("median", quantile(taken_s, 0.5)), ("p99", quantile(taken_s, 0.99)))
    )


def _target(client: Client, peers: list[str]) -> tuple[str, str]:
    """The first peer to which a path is given, and the kind of the answer; else the first peer."""
    kinds: list[str] = []
    for peer in peers:
        with client.transfer(peer, PAIR_BYTES, dport=_DPORT) as transfer:
            if transfer.path is not None:
                return peer, transfer.kind
            kinds.append(transfer.kind)
    return peers[0], kinds[0]


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
