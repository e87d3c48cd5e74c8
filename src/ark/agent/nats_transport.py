"""Agents that reach each other over NATS: each leaf's links have subjects of their own (rule 10).

A message of a stream ``up.3`` goes to ``<prefix>.up.3.<id of its sender>``. The last part is what a receiver
takes for the sender's address, so the server's permissions bind each host to its id: a user that may publish
to ``<prefix>.*.*.<id>`` only can speak for nobody else.

Delivery stays best effort. What can't be sent now, since no server is there, is dropped and counted, as news
of the past would only delay those of the present; digests and snapshots mend it.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ark.agent.addresses import SocketAddress
from ark.agent.logs import log
from ark.agent.nats_settings import NatsSettings
from ark.agent.transport import QUEUE_MAX, SLICE, Receive, TransportCounters
from ark.control.outbox import Send
from ark.control.wire import direct
from ark.errors import ConfigError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

RECONNECT_S: Final = 0.25
"""Between two attempts to reach a server: a heartbeat, for what is missed meanwhile is little."""

RECEIVED_MAX: Final = 8192
"""Messages of one subscription that wait for this process. Full: further ones are dropped and counted."""

PING_S: Final = 2.0
"""Between two questions whether the server is still there: one that falls silent, as when its machine dies,
is left after three. The library's two minutes would leave choices blind for so long."""

FAULTS_SAID: Final = 20
"""Different faults that are logged while no server is there."""

CLOSE_S: Final = 1.0
"""How long the end of a connection may take."""


class NatsTransport:
    """A connection to a NATS cluster, made and made again in the background.

    Parameters
    ----------
    host
        Our id.
    listens
        Subjects (without prefix) of others' rows that we hear from the start.

    Raises
    ------
    ConfigError
        If the certificates can't be read.
    """

    def __init__(self, settings: NatsSettings, host: int, listens: Iterable[str]) -> None:
        self.counters = TransportCounters()
        self._settings = settings
        self._own = f"{host:016x}"
        self._listens = dict.fromkeys((direct(host), *listens))
        self._client: Client | None = None
        self._tls = _tls(settings)
        self._queue: deque[tuple[str, bytes]] = deque()
        self._news = asyncio.Event()
        self._receive: Receive | None = None
        self._task: asyncio.Task[None] | None = None
        self._dropped = 0
        self._said: set[str] = set()

    @property
    def address(self) -> str:
        """The part of our subjects that the server's permissions keep to us."""
        return self._own

    def start(self, receive: Receive) -> None:
        """Begin to connect, and to hand over what comes."""
        self._receive = receive
        self._task = asyncio.get_running_loop().create_task(self._run())

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        """Addresses mean nothing here: the server knows who listens."""

    def listen(self, subject: str) -> None:
        """Hear one more subject from now on."""
        if subject in self._listens:
            return
        self._listens[subject] = None
        self._news.set()

    def send(self, sends: Iterable[Send]) -> None:
        """Queue messages; they leave soon, and never before this returns."""
        for send in sends:
            if self._client is None:
                self.counters.send_failed += 1
            elif len(self._queue) >= QUEUE_MAX:
                self.counters.queue_full += 1
            else:
                self._queue.append((send.subject, send.data))
        self._news.set()

    def drops(self) -> int:
        """Messages dropped because this process was too slow for them."""
        return self._dropped

    def close(self) -> None:
        """Begin to stop."""
        if self._task is not None:
            self._task.cancel()

    async def wait_closed(self) -> None:
        """Return once the connection has ended."""
        task = self._task
        while task is not None and not task.done():
            task.cancel()  # again: a connection that is just being made may swallow one
            await asyncio.wait([task], timeout=CLOSE_S)

    async def _run(self) -> None:
        """One connection after another: a client that the server has turned away does not come back."""
        from nats.aio.client import Client  # noqa: PLC0415 - an extra, loaded only where it is used

        while True:
            client = Client()
            try:
                await self._talk(client)
            except Exception as error:  # noqa: BLE001 - the library raises anything at what is no NATS server
                self._say(error)
            finally:
                self._client = None
                with suppress(Exception):  # whatever the server says of our end
                    async with asyncio.timeout(CLOSE_S):
                        await client.close()
            self._forget_queue()
            await asyncio.sleep(RECONNECT_S)

    async def _talk(self, client: "Client") -> None:
        settings = self._settings
        await client.connect(
            list(settings.servers),
            name=f"ark {self._own}",
            user=settings.user,
            password=settings.password,
            tls=self._tls,
            no_echo=True,
            max_reconnect_attempts=-1,
            ping_interval=PING_S,  # type: ignore[arg-type]  # seconds, also parts of one
            reconnect_time_wait=RECONNECT_S,  # type: ignore[arg-type]  # seconds, also parts of one
            error_cb=self._error,
            reconnected_cb=self._connected,
            disconnected_cb=self._disconnected,
        )
        self._client = client
        await self._connected()
        heard: set[str] = set()
        while True:
            for subject in [subject for subject in self._listens if subject not in heard]:
                heard.add(subject)
                await client.subscribe(
                    f"{settings.prefix}.{subject}.*", cb=self._hear, pending_msgs_limit=RECEIVED_MAX
                )
            await self._drain(client)
            await self._news.wait()
            self._news.clear()

    async def _drain(self, client: "Client") -> None:
        queue, counters = self._queue, self.counters
        prefix, own = self._settings.prefix, self._own
        while queue:
            for _ in range(min(SLICE, len(queue))):
                subject, data = queue.popleft()
                if not client.is_connected:
                    counters.send_failed += 1
                    continue
                await client.publish(f"{prefix}.{subject}.{own}", data)
                counters.sent += 1
                counters.sent_bytes += len(data)
            await asyncio.sleep(0)

    def _forget_queue(self) -> None:
        self.counters.send_failed += len(self._queue)
        self._queue.clear()

    async def _hear(self, message: "Msg") -> None:
        self.counters.received += 1
        self.counters.received_bytes += len(message.data)
        assert self._receive is not None
        self._receive(message.data, message.subject.rpartition(".")[2])

    async def _connected(self) -> None:
        self._news.set()
        if self._client is not None:
            self._said.clear()
            log(logging.INFO, "connected to NATS", server=_server(self._client))

    async def _disconnected(self) -> None:
        if self._client is not None and not self._client.is_closed:
            log(logging.WARNING, "no connection to NATS")

    async def _error(self, error: Exception) -> None:
        from nats.errors import Error, SlowConsumerError  # noqa: PLC0415 - loaded with the client

        if isinstance(error, SlowConsumerError):
            self._dropped += 1
        elif isinstance(error, Error | OSError | TimeoutError):
            self._say(error)
        else:
            asyncio.get_running_loop().call_exception_handler({"message": "NATS", "exception": error})

    def _say(self, error: Exception) -> None:
        """Log a fault once until a server is there again, not with each attempt."""
        detail = f"{type(error).__name__}: {error}"[:200]
        if detail not in self._said and len(self._said) < FAULTS_SAID:
            self._said.add(detail)
            log(logging.WARNING, "NATS", detail=detail)


def _server(client: "Client") -> str:
    url = client.connected_url
    return "" if url is None else url.netloc.rpartition("@")[2]


def _tls(settings: NatsSettings) -> ssl.SSLContext | None:
    if settings.ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except OSError as error:
        raise ConfigError(f"{settings.ca_file} can't be read as certificates: {error}") from None
