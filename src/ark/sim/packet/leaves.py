"""The constants of schemes in which leaves choose the path of each packet, and the names of these schemes."""

from dataclasses import dataclass
from typing import Final

from ark.sim.packet.layout import CONGA, CONWEAVE, DRILL, LETFLOW, NO_BALANCER, SPRAY

BALANCERS: Final = {
    "": NO_BALANCER,
    "letflow": LETFLOW,
    "conga": CONGA,
    "drill": DRILL,
    "conweave": CONWEAVE,
    "spray": SPRAY,
}


@dataclass(frozen=True, slots=True)
class Leaves:
    """As ConWeave's ns-3 and its ``run.py`` have them for two tiers.

    The papers: flowlets end after 500 µs (CONGA, LetFlow), CONGA's meter has a time of 160 µs.
    """

    flowlet_gap_ns: int = 100_000
    """LetFlow and CONGA: a flowlet ends with a gap longer than this."""
    conga_interval_ns: int = 50_000
    conga_decay: float = 0.2
    conga_levels: int = 8
    conga_aging_ns: int = 500_000
    conga_samples: int = 4
    drill_samples: int = 2
    conweave_reply_extra_ns: int = 4_000
    """A reply is late after the propagation there and back and this."""
    conweave_path_pause_ns: int = 16_000
    conweave_flush_extra_ns: int = 16_000
    conweave_tail_wait_ns: int = 200_000
    conweave_expiry_ns: int = 300_000
    """A flow that was silent for longer begins a new epoch on any path."""

    def bounds(self) -> list[tuple[str, float, float, float]]:
        """Name, value, least and most of each constant."""
        return [
            ("flowlet_gap_ns", self.flowlet_gap_ns, 0, 10**12),
            ("conga_aging_ns", self.conga_aging_ns, 0, 10**12),
            ("conweave_reply_extra_ns", self.conweave_reply_extra_ns, 0, 10**12),
            ("conweave_path_pause_ns", self.conweave_path_pause_ns, 0, 10**12),
            ("conweave_flush_extra_ns", self.conweave_flush_extra_ns, 0, 10**12),
            ("conweave_tail_wait_ns", self.conweave_tail_wait_ns, 0, 10**12),
            ("conweave_expiry_ns", self.conweave_expiry_ns, 0, 10**12),
            ("conga_interval_ns", self.conga_interval_ns, 1, 10**12),
            ("conga_decay", self.conga_decay, 1e-6, 1),
            ("conga_levels", self.conga_levels, 1, 128),
            ("conga_samples", self.conga_samples, 1, 10**6),
            ("drill_samples", self.drill_samples, 1, 10**6),
        ]
