"""Prometheus metrics: read from the core's counters when asked for, served by the agent's own loop."""

import asyncio
import resource
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from ark.agent.addresses import SocketAddress
from ark.agent.daemon import Agent
from ark.agent.status import learned_counts
from ark.control.histogram import Times
from ark.control.load import FLOW

LINKS_MAX: Final = 4096
"""Fabric links with series of their own; a larger fabric shows those of our own switches only."""

REQUEST_MAX: Final = 8192
REQUEST_S: Final = 5.0

DECISIONS: Final = (
    ("arrivals", "Transfers that asked for a path"),
    ("reservations", "Paths chosen by what is known of others"),
    ("fallbacks", "Paths chosen at random because all were taken (policy paper)"),
    ("blind", "Paths chosen by hash because too few peers were heard"),
    ("unmanaged", "Transfers left alone"),
    ("conflicts", "Races lost"),
    ("moves", "Transfers moved to another path"),
    ("yields", "Claims given up (policy paper)"),
    ("expired", "Reservations that never started"),
    ("completed", "Transfers that ended"),
)
REPLICATION: Final = (
    ("puts", "Rows of peers taken in"),
    ("drops", "Rows of peers ended"),
    ("leases_ended", "Peers that fell silent"),
    ("epochs_seen", "Restarts of peers"),
    ("asked", "Snapshots asked for"),
    ("mended", "Snapshots applied"),
    ("abandoned", "Snapshots never complete"),
    ("served", "Snapshots sent"),
    ("turned_away", "Snapshot requests not answered"),
    ("leaks", "Rows dropped because nobody renewed them"),
    ("stamps_ahead", "Stamps more than a second ahead"),
    ("clones", "Signs of another host with our id"),
    ("jumps", "Jumps over a greater epoch"),
)
NETWORK: Final = (
    ("sent", "Datagrams sent"),
    ("received", "Datagrams received"),
    ("sent_bytes", "Bytes sent"),
    ("received_bytes", "Bytes received"),
    ("send_buffer_full", "Datagrams lost because the kernel's buffer was full"),
    ("send_failed", "Datagrams that the kernel refused"),
    ("queue_full", "Datagrams lost because our own queue was full"),
)


class AgentCollector(Collector):
    """Reads an agent; nothing is counted twice, and nothing while nobody asks."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        agent = self._agent
        controller = agent.controller
        replica = controller.replica
        yield from _counters("ark", DECISIONS, controller.decider.counters)
        yield from _counters("ark_replica", REPLICATION, replica.counters)
        yield from _counters("ark_network", NETWORK, agent.transport.counters)
        yield _counter(
            "ark_network_receive_drops", "Datagrams lost in the receive buffer", agent.transport.drops()
        )
        refused = CounterMetricFamily("ark_refused", "Datagrams refused or ignored", labels=["reason"])
        for reason, count in [*replica.counters.refused.items(), *replica.counters.ignored.items()]:
            refused.add_metric([str(reason)], count)
        yield refused
        yield from self._local()
        yield from self._gauges()
        yield from (_histogram(name, text, times) for name, text, times in self._times())
        yield from self._links()

    def _local(self) -> Iterator[Metric]:
        server, service, record = self._agent.server, self._agent.service, self._agent.record
        yield _counter("ark_requests", "Requests of applications", server.requests)
        yield _counter("ark_requests_malformed", "Applications cut off", server.malformed)
        yield _counter("ark_clients_turned_away", "Applications beyond the limit", server.turned_away)
        yield _counter("ark_unsteerable", "Transfers that no source port steers", service.unsteerable)
        yield _counter("ark_unreachable", "Paths chosen that no source port leads to", service.unreachable)
        if record is not None:
            yield _counter("ark_record_dropped", "Transfers missing in the record", record.dropped)

    def _gauges(self) -> Iterator[Metric]:
        agent = self._agent
        controller, replica = agent.controller, agent.controller.replica
        usage = resource.getrusage(resource.RUSAGE_SELF)
        for name, text, value in (
            ("ark_peers", "Peers configured", controller.peers_expected),
            ("ark_peers_heard", "Peers heard and proven", replica.heard),
            ("ark_table_rows", "Live reservations in the table", len(controller.view.table)),
            ("ark_transfers", "Transfers of this host", len(agent.service.transfers)),
            ("ark_clients", "Applications connected", len(agent.server.connections)),
            ("ark_path_maps", "Path maps kept", len(agent.book)),
            ("ark_dry_run", "1 if nothing is steered", int(agent.service.dry_run)),
            ("ark_cloned", "1 while another host seems to use our id", int(replica.cloned)),
            ("ark_memory_max_bytes", "Greatest resident memory", usage.ru_maxrss * 1024),
            ("ark_cpu_seconds", "CPU time", usage.ru_utime + usage.ru_stime),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        yield from self._learned()

    def _learned(self) -> Iterator[Metric]:
        """Of learned paths, where there are any."""
        counts = learned_counts(self._agent.book.learned)
        if counts["epoch"]:
            maps = GaugeMetricFamily("ark_learned_maps", "Learned maps by their state", labels=["state"])
            for state in ("valid", "in_doubt"):
                maps.add_metric([state], counts[state])
            yield maps
            text = "Greatest epoch of a learned map"
            yield GaugeMetricFamily("ark_learned_epoch", text, value=counts["epoch"])

    def _times(self) -> Iterator[tuple[str, str, Times]]:
        engine, lags = self._agent.engine, self._agent.controller.replica.lags
        yield "ark_decision_seconds", "Time to decide for one input of a client", engine.decision_times
        yield "ark_loop_lag_seconds", "Lateness of the timer", engine.late_times
        text = "From the assignment of a peer's transfer to our knowing of it, clock differences included"
        yield "ark_control_lag_seconds", text, lags

    def _links(self) -> Iterator[Metric]:
        fabric, loads = self._agent.config.fabric, self._agent.controller.view.loads
        if loads is None:
            return
        links = [link for link in fabric.links if fabric.is_fabric_link(link.index)]
        if len(links) > LINKS_MAX:
            near = {
                name
                for nic in self._agent.config.host.nics
                for name in fabric.attachments[nic.attachment].switches
            }
            links = [link for link in links if link.source in near or link.target in near][:LINKS_MAX]
        flows = GaugeMetricFamily("ark_link_flows", "Transfers on a link", labels=["source", "target"])
        sizes = GaugeMetricFamily("ark_link_bytes", "Bytes announced on a link", labels=["source", "target"])
        for link in links:
            flows.add_metric([link.source, link.target], loads.flows[link.index] / FLOW)
            sizes.add_metric([link.source, link.target], loads.size_bytes[link.index])
        yield flows
        yield sizes


def _counters(prefix: str, names: Iterable[tuple[str, str]], counters: object) -> Iterator[Metric]:
    for name, text in names:
        yield _counter(f"{prefix}_{name}", text, getattr(counters, name))


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _histogram(name: str, text: str, times: Times) -> Metric:
    bounds = [*(repr(bound / 1e9) for bound in times.bounds_ns), "+Inf"]
    buckets = list(zip(bounds, accumulate(times.counts), strict=True))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=times.total_ns / 1e9)


class MetricsServer:
    """``GET /metrics`` over HTTP, and nothing else."""

    def __init__(self, agent: Agent, address: SocketAddress) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(AgentCollector(agent))
        self._address = address
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that is really listened on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, *self._address, limit=REQUEST_MAX)

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(request.split(b"\r\n", 1)[0]))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            return  # no request, or a reader that has gone
        finally:
            writer.close()

    def _answer(self, line: bytes) -> bytes:
        words = line.split(b" ")
        if len(words) != 3 or words[0] != b"GET" or words[1].split(b"?")[0] != b"/metrics":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        body = generate_latest(self._registry)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE_LATEST}\r\nContent-Length: {len(body)}\r\n"
        return f"{head}Connection: close\r\n\r\n".encode() + body
