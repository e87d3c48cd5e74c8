"""Links of a set rate, and hosts that send over them the way RDMA does: with a window, and without loss.

Every link gets a token bucket (``tbf``). Its queue holds the windows of all connections that may meet there,
so that nothing is dropped, as behind priority flow control. Hosts get a fixed window (the receiver clamps it)
that is open from the first packet on: connections on one link then share it evenly, as simulated fluids do,
and a transfer's time depends on its path and not on the ups and downs of TCP's congestion control.
"""

from dataclasses import dataclass
from typing import Final

from ark.lab.clos import Clos

SEGMENT_S: Final = 1.3e-3
"""Time of the largest burst of packets on a link: 16 KiB at 100 Mbit/s. Shorter ones cost CPU time, longer
ones make the sharing coarse."""

WINDOW_SEGMENTS: Final = 4
"""Bursts in a window: enough that a lone connection fills a path of six links (measured: 96.3 of 95.6 Mbit/s
that headers leave, the rest is the bucket's burst), few enough that queues stay short."""

QUEUED_WINDOWS: Final = 256
"""Windows that a queue holds: more connections than ever meet on one link of the lab."""

MSS: Final = 1448
"""Payload of a packet: an MTU of 1500 less IPv4, TCP and the timestamps of TCP."""

HEADER_BYTES: Final = 66
"""Ethernet 14, IPv4 20, TCP 20, timestamps 12: what a token bucket counts beside the payload."""

GOODPUT: Final = MSS / (MSS + HEADER_BYTES)
"""Share of a link's rate that carries payload."""

_GSO_LEAST, _GSO_MOST = 4096, 65_536
_ROOT: Final = 0xFFFF_FFFF
_HANDLE: Final = 0x1_0000


@dataclass(frozen=True, slots=True)
class Shape:
    """The constants that follow from the rate of the hosts' links."""

    segment_bytes: int
    window_bytes: int

    @property
    def burst_bytes(self) -> int:
        """What a bucket lets through at once: one burst with the headers of its packets."""
        return self.segment_bytes + HEADER_BYTES * (self.segment_bytes // MSS + 2)

    @property
    def queue_bytes(self) -> int:
        """What waits behind a bucket before anything is dropped."""
        return QUEUED_WINDOWS * self.window_bytes

    @property
    def window_packets(self) -> int:
        """The window in packets, which a connection may send at once."""
        return -(-self.window_bytes // MSS)


def shape_for(rate_bps: int) -> Shape:
    """The constants for hosts with links of ``rate_bps``."""
    segment = int(min(_GSO_MOST, max(_GSO_LEAST, rate_bps / 8 * SEGMENT_S)))
    return Shape(segment, WINDOW_SEGMENTS * segment)


def shape(made: Clos, constants: Shape) -> None:
    """Give every link its rate and every host its window."""
    for link in made.fabric.links:
        routes, index = made.routes(link.source), made.interface_index(link.index)
        routes.link("set", index=index, gso_max_size=constants.segment_bytes)
        routes.tc(
            "replace",
            "tbf",
            index,
            handle=_HANDLE,
            parent=_ROOT,
            rate=link.rate_bps // 8,
            burst=constants.burst_bytes,
            limit=constants.queue_bytes,
        )
    for nic in made.fabric.nics:
        made.write_sysctl(
            nic.name, ipv4__tcp_slow_start_after_idle=0, ipv4__tcp_no_metrics_save=1, ipv4__tcp_tw_reuse=1
        )
        made.write_text(nic.name, "ipv4/tcp_congestion_control", "reno")
    made.route_metrics = {"initcwnd": constants.window_packets}
    made.apply(made.fabric)
