"""ARK itself: the controllers of all hosts, ``ark.control`` as it is, behind the form of a scheme."""

from collections.abc import Sequence
from typing import Literal

from ark.control.fleet import Fleet
from ark.fabric.topology import Fabric
from ark.sim.schemes.ecmp import hashed_path
from ark.sim.schemes.ports import Steering
from ark.sim.schemes.scheme import Assignment, Transfer


class Steered:
    """``ark`` and ``ark-paper``: a path reserved at arrival, seen by other hosts ``lag_ns`` later.

    Parameters
    ----------
    fabric
        The network.
    policy
        ``"ark"``, or ``"paper"`` for Algorithm 1.
    transfers
        All that will arrive, in order.
    spread
        A random number from 0 for each transfer, by its index: the paper's fallback draws from it.
    lag_ns, hold_ns, stripes, moves, min_bytes, release
        See :class:`ark.control.fleet.Fleet`.
    segment_ends
        Whether the controllers are asked at segment ends, where a transfer may leave a path that it lost.
    segment_bytes
        Bytes that a stripe pulls at a time, and after which a transfer may move; None for all at once.
    """

    pooled = False
    balancer = ""
    goodput = 1.0

    def __init__(
        self,
        fabric: Fabric,
        policy: Literal["ark", "paper"],
        transfers: Sequence[Transfer],
        spread: Sequence[int],
        *,
        lag_ns: int = 0,
        hold_ns: int = 0,
        release: Literal["owner", "any"] = "owner",
        stripes: int = 1,
        moves: bool = False,
        segment_ends: bool = False,
        min_bytes: int = 0,
        segment_bytes: int | None = None,
        seed: int = 0,
    ) -> None:
        self.name = "ark" if policy == "ark" else "ark-paper"
        self.stripes_max = stripes
        self.segment_bytes = segment_bytes
        self.moves = segment_ends
        self._fabric = fabric
        self._spread = spread
        self._steering = Steering(fabric, transfers)
        self._hosts = {host.name: number for number, host in enumerate(fabric.hosts)}
        self._live: dict[int, Transfer] = {}
        self._fleet = Fleet(
            fabric,
            hosts=len(fabric.hosts),
            policy=policy,
            lag_ns=lag_ns,
            hold_ns=hold_ns,
            release=release,
            stripes=stripes,
            moves=moves,
            min_bytes=min_bytes,
            seed=seed,
        )

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """The paths that the host's controller chose; where it has no preference, that of the own port."""
        index, source, target = transfer.index, transfer.source, transfer.target
        self._live[index] = transfer
        choice = self._fleet.flow_arrived(
            now_ns,
            self._hosts[source.host],
            index,
            source.attachment,
            target.attachment,
            transfer.size_bytes,
            self._spread[index],
        )
        if not choice.paths:
            hashed = hashed_path(self._fabric, transfer)
            return Assignment((hashed,), (transfer.sport,), choice.start_ns)
        return self._assignment(transfer, choice.paths, choice.start_ns)

    def segment_ended(self, now_ns: int, index: int, bytes_left: int) -> Assignment | None:
        """New paths, if the transfer lost a race or gains by moving."""
        transfer = self._live[index]
        host = self._hosts[transfer.source.host]
        choice = self._fleet.segment_ended(now_ns, host, index, bytes_left)
        return None if choice is None else self._assignment(transfer, choice.paths, now_ns)

    def completed(self, now_ns: int, index: int) -> None:
        """Release."""
        transfer = self._live.pop(index)
        self._fleet.flow_completed(now_ns, self._hosts[transfer.source.host], index)

    def next_deadline(self) -> int | None:
        """When a row becomes visible to others, or a hold ends."""
        return self._fleet.next_deadline()

    def tick(self, now_ns: int) -> list[tuple[int, Assignment]]:
        """Transfers that lost a race while they were held back."""
        return [
            (move.flow, self._assignment(self._live[move.flow], move.paths, now_ns))
            for move in self._fleet.tick(now_ns)
        ]

    def warnings(self) -> list[str]:
        """Transfers that could not be steered."""
        return self._steering.warnings()

    def _assignment(self, transfer: Transfer, paths: tuple[int, ...], start_ns: int) -> Assignment:
        return self._steering.assignment(transfer, paths, self._spread[transfer.index], start_ns)
