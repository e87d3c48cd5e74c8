"""Rows heard by the half, where each leaf's links have subjects of their own (rule 10).

On NATS a row goes to ``up.<source leaf>`` and ``down.<destination leaf>``, two streams with seqs and losses
of their own. A host that hears one of them must count the row on the links that this subject is about, and
on no others, whose load it would know in part only. So each half is a row of its own in the table, between
attachments that stand for half of the way: of N attachments, N + a is a's way up, 2N + a its way down. Our
own rows are known whole and stay as they are.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ark.control.geometry import Geometry
from ark.control.rows import Drop, Row

_SECOND: Final = 1 << 62
"""Set in the flow of the half way down, so that the table tells it from the half way up."""


class HalvedGeometry:
    """A geometry in which half of each way has paths of its own."""

    __slots__ = ("_geometry", "attachments", "link_rates_bps")

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self.attachments: range = range(3 * len(geometry.attachments))
        self.link_rates_bps: Sequence[int] = geometry.link_rates_bps

    def attachment_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        """The links of each path; only its first half or its second where ``source`` stands for that."""
        count = len(self._geometry.attachments)
        half, source = divmod(source, count)
        paths = self._geometry.attachment_paths(source, target % count)
        if half == 0:
            return paths
        return tuple(path[: len(path) // 2] if half == 1 else path[len(path) // 2 :] for path in paths)

    def up_paths(self, source: int, target: int) -> Sequence[int]:
        """The numbers of those paths that are up, the whole way."""
        count = len(self._geometry.attachments)
        return self._geometry.up_paths(source % count, target % count)


def half_of(row: Row, subject: str, attachments: int) -> Row:
    """The half of a peer's row that ``subject`` (``up…`` or ``down…``) is about."""
    if subject.startswith("up."):
        return replace(row, source=row.source + attachments)
    return replace(row, source=row.source + 2 * attachments, flow=row.flow | _SECOND)


def half_drop(drop: Drop, subject: str) -> Drop:
    """The end of that half."""
    return drop if subject.startswith("up.") else replace(drop, flow=drop.flow | _SECOND)


def whole_flow(flow: int) -> int:
    """The owner's own number of a flow in the table."""
    return flow & ~_SECOND
