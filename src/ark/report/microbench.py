"""Measure Table 1 on this machine: the controller's own operations, run as the agent runs them.

CPU time of this process, the best of several rounds: what else the machine does lengthens a round and never
shortens it. The worst case of the paper's Algorithm 1 is a full table: all K paths are looked at, none is
free.
"""

import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from ark.control.decider import Decider
from ark.control.paper import Claims
from ark.control.policy import Policy
from ark.control.rows import Row, State
from ark.control.view import view
from ark.fabric import ALL_PORTS, UDP, Fabric, FiveTuple, leaf_spine, paper_fabric, path_map
from ark.fabric.five_tuple import header_of
from ark.fabric.route import router
from ark.report.paper import TABLE1_S
from ark.report.table1 import Table1, Timing
from ark.units import NS_PER_S, format_rate, format_size

ROUNDS: Final = 5
MANY: Final = 1000
"""Paths of the large fabric, as in the paper."""

_SIZE_BYTES: Final = 1_600_000_000
_RATE_BPS: Final = 100_000_000_000
_DPORT: Final = 4791
_OTHER: Final = 1  # a host that holds reservations; the measured one is host 0
_BATCH: Final = 200


def measure(*, rounds: int = ROUNDS) -> Table1:
    """Measure all rows; takes about two seconds with the default number of rounds."""
    few, many = paper_fabric(), leaf_spine(2, MANY, 1)
    calls = {
        "hash": ("hash of one five-tuple", _hash_s(few, rounds), "the leaf's hash and selection, one call"),
        "lookup": ("look-up in the reservation table", _lookup_s(rounds), "who holds a path, all four taken"),
        "initialize": (
            "path map of one peer, all 2¹⁶ ports",
            _initialize_s(few, rounds),
            "vectorised over ports, both switches on the way",
        ),
        "arrival_4": (
            "flow arrival, K = 4, the paper's policy",
            _arrival_s(few, "paper", 4, rounds),
            f"all {4} paths reserved; row for the peers made",
        ),
        "arrival_1000": (
            f"flow arrival, K = {MANY}, the paper's policy",
            _arrival_s(many, "paper", MANY, rounds),
            f"all {MANY} paths reserved; row for the peers made",
        ),
        "arrival_4_ark": (
            "flow arrival, K = 4, our policy",
            _arrival_s(few, "ark", 4, rounds),
            f"up to {_BATCH + 4} live transfers; row for the peers made",
        ),
        "arrival_1000_ark": (
            f"flow arrival, K = {MANY}, our policy",
            _arrival_s(many, "ark", MANY, rounds),
            f"up to {_BATCH + MANY} live transfers; row for the peers made",
        ),
        "transfer": (
            f"{format_size(_SIZE_BYTES)} KV cache at {format_rate(_RATE_BPS)}",
            _SIZE_BYTES * 8 / _RATE_BPS,
            "computed: size over rate",
        ),
    }
    timings = tuple(
        Timing(name, what, seconds, TABLE1_S.get(name), how) for name, (what, seconds, how) in calls.items()
    )
    return Table1(timings, machine())


def machine() -> str:
    """The processor and the Python of this machine, for people."""
    return f"{_processor()}, one thread, {platform.python_implementation()} {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or f"{platform.machine()} on {sys.platform}"


def _best_s(call: Callable[[], object], calls: int, rounds: int, prepare: Callable[[], object]) -> float:
    """CPU seconds a call; ``call`` makes ``calls`` of them, ``prepare`` runs unmeasured before each round."""
    best_ns = None
    for _ in range(rounds):
        prepare()
        started_ns = time.process_time_ns()
        call()
        took_ns = time.process_time_ns() - started_ns
        best_ns = took_ns if best_ns is None else min(best_ns, took_ns)
    return (best_ns or 0) / calls / NS_PER_S


def _nothing() -> None:
    pass


def _hash_s(fabric: Fabric, rounds: int) -> float:
    source, target = fabric.nic("h0"), fabric.nic("h8")
    decision = router(fabric).decisions(source, target)[0]
    headers = [
        header_of(FiveTuple(source.address, target.address, port, _DPORT, UDP)) for port in range(2000)
    ]

    def call() -> None:
        for header in headers:
            decision.choose(header)

    return _best_s(call, len(headers), rounds, _nothing)


def _lookup_s(rounds: int) -> float:
    claims = Claims()
    for path in range(4):
        claims.change(None, _row(flow=path, path=path))
    paths = list(range(4)) * 2500

    def call() -> None:
        for path in paths:
            claims.owner(path)

    return _best_s(call, len(paths), rounds, _nothing)


def _initialize_s(fabric: Fabric, rounds: int) -> float:
    source, target = fabric.nic("h0"), fabric.nic("h8")
    return _best_s(
        lambda: path_map(fabric, source, target, dport=_DPORT, proto=UDP, ports=ALL_PORTS),
        1,
        rounds,
        _nothing,
    )


def _arrival_s(fabric: Fabric, name: Literal["ark", "paper"], paths: int, rounds: int) -> float:
    """Mean of a batch of arrivals at a host that knows of one transfer of another host on every path."""
    policy = Policy(name=name, line_rate_bps=_RATE_BPS, hold_ns=0)
    knowledge = view(policy, fabric, measured=False)
    for path in range(paths):
        knowledge.table.put(_row(flow=path, path=path))
    decider = Decider(0, 0, policy=policy, view=knowledge)

    def call() -> None:
        for flow in range(_BATCH):
            decider.flow_arrived(flow, flow, flow, 0, 1, _SIZE_BYTES, spread=flow)

    def clear() -> None:
        for flow in range(_BATCH if len(decider) else 0):
            decider.flow_completed(0, flow)

    return _best_s(call, _BATCH, rounds, clear)


def _row(*, flow: int, path: int) -> Row:
    return Row(
        host=_OTHER,
        epoch=0,
        seq=flow,
        flow=flow,
        state=State.ACTIVE,
        paths=(path,),
        source=0,
        target=1,
        size_bytes=_SIZE_BYTES,
        stamp=flow,
        fallback=False,
    )
