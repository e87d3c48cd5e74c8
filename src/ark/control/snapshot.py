"""All rows of a stream at one seq, in chunks of one datagram each: how they are cut, and how put together.

A snapshot is asked for and resent chunk by chunk, because of a hundred chunks some are always lost. Chunks
of two snapshots are never mixed: all carry the request that they answer and the seq that they show.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from ark.control.wire import (
    CHUNK_OVERHEAD,
    CHUNKS_MAX,
    MISSING_MAX,
    ROOM,
    Chunk,
    Numbered,
    encode_chunk,
    encode_message,
)
from ark.errors import LocalProtocolError

_ROWS_ROOM: Final = ROOM - CHUNK_OVERHEAD


def split(subject: str, request: int, seq: int, rows: Iterable[Numbered]) -> list[bytes]:
    """The encoded chunk messages of a snapshot; one without rows if there are none.

    Raises
    ------
    LocalProtocolError
        If the rows need more than ``CHUNKS_MAX`` chunks.
    """
    groups: list[list[bytes]] = [[]]
    room = _ROWS_ROOM
    for numbered in rows:
        row = encode_message(numbered)
        if len(row) > room:
            groups.append([])
            room = _ROWS_ROOM
        groups[-1].append(row)
        room -= len(row)
    if len(groups) > CHUNKS_MAX:
        raise LocalProtocolError(f"a snapshot of {len(groups)} chunks; at most {CHUNKS_MAX} are allowed")
    return [
        encode_chunk(subject, request, seq, index, len(groups), group) for index, group in enumerate(groups)
    ]


class Assembly:
    """The chunks of one requested snapshot that have come in; at most ``CHUNKS_MAX`` datagrams of memory."""

    __slots__ = ("_chunks", "_count", "request", "seq")

    def __init__(self, request: int) -> None:
        self.request = request
        self.seq = -1
        self._count = 0
        self._chunks: dict[int, Sequence[Numbered]] = {}

    def add(self, chunk: Chunk) -> list[Numbered] | None:
        """Take in a chunk of this request; all rows once the last one is in, None before.

        A chunk that shows a later seq begins anew (the sender no longer had the former snapshot); one that
        does not fit the others is left out.
        """
        if chunk.seq > self.seq:
            self.seq, self._count = chunk.seq, chunk.count
            self._chunks.clear()
        if chunk.seq < self.seq or chunk.count != self._count or chunk.index >= self._count:
            return None
        self._chunks[chunk.index] = chunk.rows
        if len(self._chunks) < self._count:
            return None
        return [row for index in range(self._count) for row in self._chunks[index]]

    def missing(self) -> tuple[int, ...]:
        """The first chunks that have not come in, as many as one request names; none before the first
        came."""
        missing = (index for index in range(self._count) if index not in self._chunks)
        return tuple(islice(missing, MISSING_MAX))
