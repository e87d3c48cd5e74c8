"""Mooncake's traces: one JSON object a line, with the hash of every 512-token block of the prompt."""

from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta, Struct

from ark.units import quoted
from ark.workload.arrivals import ARRIVED_S_MAX
from ark.workload.csv_traces import TOKENS_MAX, Raw
from ark.workload.faults import Faults, one_line
from ark.workload.table import ROWS_MAX

BLOCK_TOKENS: Final = 512
"""Tokens a block hash stands for."""

LINE_CHARS_MAX: Final = 1 << 21
"""Longest line: the hashes of a prompt of 50 million tokens."""

_HASHES_MAX: Final = TOKENS_MAX // BLOCK_TOKENS + 1
_Tokens = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]
_Prompt = Annotated[int, Meta(ge=1, le=TOKENS_MAX)]
_Hash = int | Annotated[str, Meta(max_length=200)]


class Row(Struct, frozen=True):
    """One request; other fields are ignored."""

    timestamp: Annotated[float, Meta(ge=0, le=ARRIVED_S_MAX * 1e3)]
    input_length: _Prompt
    output_length: _Tokens
    hash_ids: Annotated[list[_Hash], Meta(max_length=_HASHES_MAX)] | None = None


def read_mooncake(file: str, text: str, *, limit: int | None, prefix_reuse: bool) -> Raw:
    """Requests of a Mooncake trace.

    Parameters
    ----------
    file : str
        Its name, for messages.
    text : str
    limit : int, optional
        Read no more than the first so many requests.
    prefix_reuse : bool
        Count as cached the leading blocks that earlier requests had already, as if no cache ever forgot; the
        last token of a prompt is never cached.

    Raises
    ------
    ConfigError
        With every fault of every line: no JSON, a field that is missing, of another type or out of bounds, a
        number of hashes that is not the prompt's number of blocks.
    """
    faults = Faults(file)
    decoder = msgspec.json.Decoder(Row)
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if faults.full or len(rows) == limit:
            break
        if len(rows) == ROWS_MAX:
            faults.add(f"has more than {ROWS_MAX} rows; take only the first ones")
            break
        if line.strip():
            row = _row(decoder, line, number, faults, hashes_needed=prefix_reuse)
            if row is not None:
                rows.append(row)
    faults.check()
    prompt = np.array([row.input_length for row in rows], dtype=np.int64)
    return Raw(
        arrived_s=np.array([row.timestamp for row in rows]) / 1e3,
        prompt_tokens=prompt,
        output_tokens=np.array([row.output_length for row in rows], dtype=np.int64),
        prefix_tokens=_cached_tokens(rows) if prefix_reuse else np.zeros_like(prompt),
    )


def _row(
    decoder: msgspec.json.Decoder[Row], line: str, number: int, faults: Faults, *, hashes_needed: bool
) -> Row | None:
    if len(line) > LINE_CHARS_MAX:
        faults.add(f"line of {len(line)} characters; at most {LINE_CHARS_MAX} are allowed", line=number)
        return None
    try:
        row = decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        faults.add(f"{quoted(line)}: {one_line(error)}", line=number)
        return None
    blocks = -(-row.input_length // BLOCK_TOKENS)
    if row.hash_ids is not None and len(row.hash_ids) != blocks:
        faults.add(
            f"{len(row.hash_ids)} hashes for {row.input_length} tokens; one for every {BLOCK_TOKENS} tokens "
            f"makes {blocks}",
            line=number,
            column="hash_ids",
        )
    elif row.hash_ids is None and hashes_needed:
        faults.add("is missing; prefix reuse needs the hashes of all blocks", line=number, column="hash_ids")
    return row


def _cached_tokens(rows: list[Row]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Tokens of each prompt in leading blocks that an earlier prompt had: int64[request]."""
    seen: set[int | str] = set()
    cached = np.zeros(len(rows), dtype=np.int64)
    for index, row in enumerate(rows):
        blocks = row.hash_ids or []
        known = next((position for position, block in enumerate(blocks) if block not in seen), len(blocks))
        cached[index] = min(known * BLOCK_TOKENS, row.input_length - 1)
        seen.update(blocks)
    return cached
