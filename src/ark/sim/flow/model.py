"""The constants of the flow-level engine: the payload share of a link's rate, and the latency of a path."""

from typing import Final

from msgspec import Struct

from ark.errors import Fault

HEADER_BYTES: Final = 52
"""Headers of a data packet: Ethernet 14, IP 20, UDP 8, transport 10 (SimAI's ns-3)."""
ACK_BYTES: Final = 60
"""An acknowledgement on the wire (SimAI's ns-3)."""
PAYLOAD_BYTES: Final = 9000
"""Payload of a full packet, as SimAI ships it."""
REFERENCE_RATE_BPS: Final = 100_000_000_000
"""The rate at which SimAI's ns-3 cuts the time of a packet to whole nanoseconds."""

_BITS: Final = 8
_NS: Final = 1_000_000_000


class FlowModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How transfers are made into fluids.

    Attributes
    ----------
    payload_bytes
        Payload of a full packet.
    goodput
        Share of a link's rate that carries payload; None for that of ``payload_bytes`` on SimAI's ns-3:
        99.448 % at 9000 B, 95.238 % at 1000 B.
    base_latency_ns
        Added to every transfer; None for what its path gives: propagation there and back, store and forward
        of a full packet at every switch, and the acknowledgement of the last.
    """

    payload_bytes: int = PAYLOAD_BYTES
    goodput: float | None = None
    base_latency_ns: int | None = None

    def faults(self) -> list[Fault]:
        """What is not allowed in these numbers."""
        found = []
        if not 64 <= self.payload_bytes <= 65_536:
            found.append(
                Fault("payload", f"{self.payload_bytes} B is out of bounds; allowed are 64 to 65536")
            )
        if self.goodput is not None and not 0 < self.goodput <= 1:
            found.append(Fault("goodput", f"{self.goodput:g} is no share above 0 and up to 1"))
        if self.base_latency_ns is not None and not 0 <= self.base_latency_ns <= 10**12:
            found.append(
                Fault("base_latency_ns", f"{self.base_latency_ns} is out of bounds; allowed are 0 to 10^12")
            )
        return found

    @property
    def goodput_share(self) -> float:
        """Payload over line rate.

        Source: a packet of 9052 B takes 724 ns at 100 Gbit/s in ns-3, which cuts off fractions.
        """
        if self.goodput is not None:
            return self.goodput
        packet_ns = wire_ns(self.payload_bytes + HEADER_BYTES, REFERENCE_RATE_BPS)
        return self.payload_bytes * _BITS * _NS / (packet_ns * REFERENCE_RATE_BPS)


def wire_ns(size_bytes: int, rate_bps: int) -> int:
    """Time of a packet on a link, cut to whole nanoseconds as ns-3 does."""
    return size_bytes * _BITS * _NS // rate_bps
