"""The tables that ``ark status`` and ``ark top`` show, as plain data."""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from ark.agent.ports import Learned, Way
from ark.client.messages import Lanes
from ark.control.load import FLOW
from ark.control.rows import Row
from ark.errors import LocalProtocolError

if TYPE_CHECKING:
    from ark.agent.daemon import Agent

ROWS_MAX: Final = 10_000
"""Rows of one table; ``total`` says how many there are."""

Table = dict[str, object]


def table(agent: "Agent", question: str, argument: int) -> Table:
    """One table: ``summary``, ``peers``, ``reservations``, ``digest``, ``links`` and so on.

    Raises
    ------
    LocalProtocolError
        If there is no table of that name.
    """
    make = TABLES.get(question)
    if make is None:
        raise LocalProtocolError(f"no table {question[:32]!r}; there are {', '.join(TABLES)}")
    return make(agent, argument)


def _summary(agent: "Agent", _: int) -> Table:
    controller, config, transport = agent.controller, agent.config, agent.transport
    replica, held = controller.replica, controller.view.table
    return {
        "host": config.host.name,
        "fabric": config.fabric.name,
        "fabric_digest": config.fabric.digest().hex(),
        "policy": config.policy.name,
        "dry_run": agent.service.dry_run,
        "epoch": replica.epoch,
        "up_s": (time.monotonic_ns() - agent.started_ns) / 1e9,
        "address": transport.address,
        "peers": controller.peers_expected,
        "peers_heard": replica.heard,
        "blind": controller.decider.blind,
        "cloned": replica.cloned,
        "reservations": len(held),
        "transfers": len(agent.service.transfers),
        "clients": len(agent.server.connections),
        "path_maps": len(agent.book),
        "learned": learned_counts(agent.book.learned),
        "warnings": config.warnings,
        "decisions": plain(controller.decider.counters),
        "replication": plain(replica.counters),
        "network": {**plain(transport.counters), "receive_drops": transport.drops()},
    }


def _peers(agent: "Agent", _: int) -> Table:
    replica = agent.controller.replica
    rows = []
    for name, address in agent.config.peers.items():
        host = agent.ids[name]
        peer = replica.peers.get(host)
        rows.append(
            {
                "host": name,
                "address": f"{address[0]}:{address[1]}",
                "live": replica.is_live(host),
                "proven": peer is not None and peer.proven,
                "epoch": None if peer is None else peer.epoch,
                "reservations": 0 if peer is None else sum(len(s.rows) for s in peer.streams.values()),
            }
        )
    return _cut(rows)


def _reservations(agent: "Agent", _: int) -> Table:
    attachments = agent.config.fabric.attachments
    held = agent.controller.view.table

    def shown(row: Row) -> Table:
        return {
            "host": agent.names.get(row.host, f"{row.host:016x}"),
            "flow": row.flow,
            "state": row.state.name.lower(),
            "paths": list(row.paths),
            "source": " ".join(attachments[row.source].switches),
            "target": " ".join(attachments[row.target].switches),
            "size_bytes": row.size_bytes,
            "fallback": row.fallback,
            "moves": row.moves,
        }

    rows = [shown(row) for _, row in zip(range(ROWS_MAX), held, strict=False)]
    return {"total": len(held), "results": rows}


def _digest(agent: "Agent", _: int) -> Table:
    """Whether two hosts have the same table: their digests are equal."""
    digest = 0
    for row in agent.controller.view.table:
        said = msgspec.msgpack.encode(
            (
                row.host,
                row.epoch,
                row.flow,
                row.state,
                row.paths,
                row.source,
                row.target,
                row.size_bytes,
                row.stamp,
            )
        )
        digest ^= int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big")
    return {"reservations": len(agent.controller.view.table), "digest": f"{digest:016x}"}


def _links(agent: "Agent", _: int) -> Table:
    loads, fabric = agent.controller.view.loads, agent.config.fabric
    rows: list[Table] = [
        {
            "link": link.index,
            "source": link.source,
            "target": link.target,
            "rate_bps": link.rate_bps,
            "up": link.up,
            "flows": loads.flows[link.index] / FLOW if loads else 0,
            "size_bytes": loads.size_bytes[link.index] if loads else 0,
        }
        for link in fabric.links
        if fabric.is_fabric_link(link.index)
    ]
    return _cut(rows)


def _transfers(agent: "Agent", _: int) -> Table:
    now_ns = time.time_ns()
    rows = [
        {
            "flow": flow,
            "client": served.connection.name,
            "pid": served.connection.pid,
            "source": served.pair.source.name,
            "target": served.pair.target.name,
            "dport": served.request.dport,
            "size_bytes": 0 if isinstance(served.request, Lanes) else served.request.size_bytes,
            "kind": str(served.kind),
            "paths": list(served.paths),
            "source_ports": [lane.source_port for lane in served.lanes],
            "age_s": (now_ns - served.began_ns) / 1e9,
        }
        for _, (flow, served) in zip(range(ROWS_MAX), agent.service.transfers.items(), strict=False)
    ]
    return {"total": len(agent.service.transfers), "results": rows}


def _clients(agent: "Agent", _: int) -> Table:
    return _cut(
        [
            {"client": connection.name, "pid": connection.pid, "uid": connection.uid}
            for connection in agent.server.connections
        ]
    )


def _why(agent: "Agent", flow: int) -> Table:
    now_ns = time.monotonic_ns()
    rows: list[Table] = [
        {
            "cause": entry.outcome.cause,
            "ago_s": (now_ns - entry.outcome.now_ns) / 1e9,
            "input": entry.outcome.name,
            "from": "" if entry.occurrence is None else entry.occurrence.source,
            "rival": None
            if entry.outcome.rival is None
            else {
                "host": agent.names.get(entry.outcome.rival.host, f"{entry.outcome.rival.host:016x}"),
                "flow": entry.outcome.rival.flow,
            },
            "event": str(entry.outcome.event),
            "paths": list(entry.outcome.paths),
        }
        for entry in agent.controller.why(flow)
    ]
    return _cut(rows)


def _maps(agent: "Agent", _: int) -> Table:
    """The learned maps: which hold, and to which of their paths no port leads."""
    return _cut(
        [
            {
                "source": one.map.source,
                "target": one.map.target,
                "dport": one.map.dport,
                "proto": one.map.proto,
                "valid": one.is_valid,
                "epoch": one.epoch,
                "influence": str(one.map.influence),
                "missing": list(one.map.missing),
            }
            for one in agent.book.learned.values()
        ]
    )


def learned_counts(learned: Mapping[Way, Learned]) -> dict[str, int]:
    """How many learned maps hold, how many are in doubt, and the greatest epoch of one."""
    valid = sum(one.is_valid for one in learned.values())
    epoch = max((one.epoch for one in learned.values()), default=0)
    return {"valid": valid, "in_doubt": len(learned) - valid, "epoch": epoch}


def _cut(rows: list[Table]) -> Table:
    return {"total": len(rows), "results": rows[:ROWS_MAX]}


def plain(counters: object) -> Table:
    """Counters by name."""
    found = msgspec.to_builtins(counters, str_keys=True)
    assert isinstance(found, dict)
    return found


TABLES: Final[dict[str, Callable[["Agent", int], Table]]] = {
    "summary": _summary,
    "peers": _peers,
    "reservations": _reservations,
    "digest": _digest,
    "links": _links,
    "transfers": _transfers,
    "clients": _clients,
    "maps": _maps,
    "why": _why,
}
