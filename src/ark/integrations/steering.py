"""What all engines' adapters have in common: a reservation for each transfer, and the connection it names.

An engine that can be steered has several connections to a peer, lanes, of which it is known which path they
take. Before a transfer the agent is asked; its path says which lane to use. Without an answer the transfer
takes the next lane in turn, as hashing would spread it. Nothing here raises; the client bounds all waits.
"""

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from ark.client import Client, Transfer, default_client
from ark.errors import ArkError
from ark.integrations.logs import log
from ark.integrations.sessions import PeerNames, peers_from

SMALL_BYTES: Final = 65_536
"""Below this a transfer is not worth a question: metadata, flags, the tail of a prompt."""

ROCE_PORT: Final = 4791
"""``ark.fabric.roce.DPORT``, without the rest of ``ark.fabric`` in an inference process."""


@dataclass
class Counts:
    """What has passed an adapter: transfers and bytes by whether ARK chose their path."""

    steered: int = 0
    steered_bytes: int = 0
    unsteered: int = 0
    unsteered_bytes: int = 0


class Sending:
    """One transfer of an engine, from the choice of its connection to its end.

    Attributes
    ----------
    lane
        Which of the engine's connections to the peer to use.
    """

    __slots__ = ("_transfer", "lane")

    def __init__(self, lane: int, transfer: Transfer | None = None) -> None:
        self.lane = lane
        self._transfer = transfer

    @property
    def steered(self) -> bool:
        """Whether the agent has chosen the lane, and the transfer still goes on."""
        return self._transfer is not None

    def end(self) -> None:
        """The transfer is over, or has failed; once is enough."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Steering:
    """Reservations and lanes of one engine in this process.

    Parameters
    ----------
    lanes
        How many connections the engine makes to each peer; with fewer than two there is no choice, and
        transfers are only counted.
    dport, proto
        Destination port and protocol of these connections: 4791 and ``"udp"`` for RoCE.
    client
        The agent's client; by default the process's own.
    peers
        The fabric's names of peers; by default those of ``ARK_PEERS``.
    """

    def __init__(
        self,
        lanes: int,
        *,
        dport: int = ROCE_PORT,
        proto: str = "udp",
        client: Client | None = None,
        peers: PeerNames | None = None,
    ) -> None:
        self.lanes = max(1, lanes)
        self.dport = dport
        self.proto = proto
        self.counts = Counts()
        self._client = client
        self._peers = peers
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._said: set[str] = set()

    @property
    def client(self) -> Client:
        """The agent's client."""
        return default_client() if self._client is None else self._client

    def begin(self, session: str, size_bytes: int, paths: Sequence[int | None]) -> Sending:
        """A transfer of ``size_bytes`` to the peer of ``session`` begins: the lane to use.

        ``paths`` has one entry for each lane to this peer: the path it takes, None where that is not known.
        Where the agent has no preference, or can't be asked, the next lane in turn.
        """
        try:
            sending = self._reserved(session, size_bytes, paths)
        except (ArkError, OSError, RuntimeError) as error:  # of which one: no thread can be started any more
            self._say(str(error))
            sending = None
        with self._lock:
            if sending is None:
                self.counts.unsteered += 1
                self.counts.unsteered_bytes += size_bytes
                return Sending(next(self._turn) % max(1, len(paths)))
            self.counts.steered += 1
            self.counts.steered_bytes += size_bytes
        return sending

    def observe(self, size_bytes: int) -> None:
        """Count a transfer that this side can't steer."""
        with self._lock:
            self.counts.unsteered += 1
            self.counts.unsteered_bytes += size_bytes

    def _reserved(self, session: str, size_bytes: int, paths: Sequence[int | None]) -> Sending | None:
        if len(set(paths) - {None}) < 2 or size_bytes < SMALL_BYTES:
            return None
        target = self._target(session)
        if target is None:
            return None
        transfer = self.client.transfer(target, size_bytes, dport=self.dport, proto=self.proto)
        if transfer.path is None or transfer.path not in paths:
            transfer.release()
            return None
        return Sending(paths.index(transfer.path), transfer)

    def _target(self, session: str) -> str | None:
        if self._peers is None:
            self._peers = peers_from()
        return self._peers.target(session)

    def _say(self, why: str) -> None:
        """Log a fault once: it will come again with each transfer."""
        with self._lock:
            new = why not in self._said and len(self._said) < 100
            self._said.add(why)
        if new:
            log.warning("ark: %s; such transfers go on without ARK", why)
