"""KV-cache transfers as the network sees them: who sends how many bytes to whom, when, on which 5-tuple."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError
from ark.fabric.roce import DPORT, SPORTS
from ark.units import NS_PER_S, quoted
from ark.workload.kv import KvModel
from ark.workload.requests import Requests
from ark.workload.streams import Purpose, stream

NO_PORT: Final = -1
"""``sport`` of a flow whose file does not say it; ``Flows.with_ports`` draws one."""


@dataclass(frozen=True)
class Flows:
    """Transfers in order of start, one row each.

    Attributes
    ----------
    id, src, dst : list of str
        Unique names of the transfers; names of the NICs they leave and reach.
    size_bytes : int64[flow]
        1 or more.
    start_ns : int64[flow]
        Nanoseconds, 0 or more, never decreasing.
    sport, dport : int32[flow]
        ``sport`` is ``NO_PORT`` where it is open.
    path : list of str, optional
        Path that pins the flow (``2``, or ``0;2>3``: ``;`` between stripes, ``>`` a move), empty where it is
        free.
    extra : mapping of column name to list of str
        Columns of the file that ARK does not know, kept as they are.
    notes : tuple of str
        What was done to the rows on the way in, for reports.
    """

    id: list[str]
    src: list[str]
    dst: list[str]
    size_bytes: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    sport: NDArray[np.int32]
    dport: NDArray[np.int32]
    path: list[str] | None = None
    extra: Mapping[str, list[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check our own invariants; the reader has told people about theirs before."""
        count = len(self.id)
        columns: list[Sequence[object] | NDArray[np.int64] | NDArray[np.int32]] = [
            self.src, self.dst, self.size_bytes, self.start_ns, self.sport, self.dport, *self.extra.values(),
        ]  # fmt: skip
        assert all(len(column) == count for column in columns)
        assert self.path is None or len(self.path) == count
        assert bool(np.all(np.diff(self.start_ns) >= 0)), "flows are in order of start"

    def __len__(self) -> int:
        return len(self.id)

    def with_ports(self, seed: int) -> "Flows":
        """The same flows, a random RoCE source port (0xC000..0xFFFF) on each that has none yet."""
        drawn = random_ports(len(self), seed)
        return replace(self, sport=np.where(self.sport == NO_PORT, drawn, self.sport))


def random_ports(count: int, seed: int) -> NDArray[np.int32]:
    """Uniform RoCE source ports: int32[count], the first ones the same for every count."""
    rng = stream(seed, Purpose.PORTS)
    return rng.integers(SPORTS.start, SPORTS.stop, count).astype(np.int32)


def make_flows(
    requests: Requests,
    kv: KvModel,
    sources: Sequence[str],
    targets: Sequence[str],
    seed: int,
    *,
    dport: int = DPORT,
    send_prefix: bool = False,
) -> Flows:
    """One transfer a request, from a random prefill NIC to a random decode NIC, at its arrival.

    Parameters
    ----------
    requests, kv
        What is sent: the KV cache of each prompt.
    sources, targets : sequence of str
        Names of the prefill NICs and of the decode NICs.
    seed : int
        Pairs and ports follow from it, and from nothing else: the first n flows are the same for every count.
    dport : int
        Destination port of all flows.
    send_prefix : bool
        Send the cached prefix too (it lies on the prefill side only); by default the decode side holds it
        already.

    Raises
    ------
    ConfigError
        If either side has no NIC, a NIC is on both sides, or the port is none.

    Source
    ------
    ARK paper, section 4.1: "each flow is assigned a random prefill-decode pair".
    """
    if not sources or not targets:
        raise ConfigError("there is no prefill NIC" if not sources else "there is no decode NIC")
    both = set(sources) & set(targets)
    if both:
        names = ", ".join(quoted(name) for name in sorted(both)[:5])
        raise ConfigError(f"{names}: on the prefill and on the decode side; give each NIC one side")
    if not 0 <= dport <= 0xFFFF:
        raise ConfigError(f"destination port {dport} is not allowed; give 0 to 65535")
    count = len(requests)
    # One pair a row, so that the pairs of the first requests do not depend on how many there are.
    pairs = stream(seed, Purpose.PAIRS).random((count, 2))
    source = (pairs[:, 0] * len(sources)).astype(np.int64)
    target = (pairs[:, 1] * len(targets)).astype(np.int64)
    tokens = requests.prompt_tokens if send_prefix else requests.new_tokens
    return Flows(
        id=[str(number) for number in range(count)],
        src=[sources[index] for index in source.tolist()],
        dst=[targets[index] for index in target.tolist()],
        size_bytes=kv.kv_bytes(tokens),
        start_ns=np.rint(requests.arrived_s * NS_PER_S).astype(np.int64),
        sport=random_ports(count, seed),
        dport=np.full(count, dport, dtype=np.int32),
        notes=requests.notes,
    )
