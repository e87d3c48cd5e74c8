"""Snapshots on their way: which ones we asked for, and which ones we are sending.

Both sides are bounded in number, in memory and in rate, and jittered, so that a datagram that a thousand
hosts missed does not bring a thousand requests at once. Nothing is retried for ever: an ask that has failed
is forgotten, and the next heartbeat shows that it is still needed.
"""

from collections import deque
from typing import Final, NamedTuple

from ark.control.outbox import Outbox
from ark.control.randomness import Randomness
from ark.control.reports import Ignored, ReplicaCounters
from ark.control.snapshot import Assembly, split
from ark.control.stream import InStream
from ark.control.timers import Deadlines
from ark.control.wire import Ask, Chunk, Numbered

JITTER_NS: Final = 10_000_000
"""A first request waits up to this long: time for late datagrams to close the gap, and for peers to
spread."""

RETRY_NS: Final = 100_000_000
"""Time for the chunks of a request to come, before those missing are asked for again."""

ATTEMPTS_MAX: Final = 16
"""Requests for one snapshot: enough for 2,048 chunks of which 30 % are lost each time. Then it is given
up."""

PAUSE_NS: Final = 50_000_000
"""Least time between two requests of one stream, and between two snapshots sent for the same."""

ASKS_MAX: Final = 65_536
"""Streams that wait for a snapshot. Full: a further one waits for its next heartbeat."""

ASSEMBLIES_MAX: Final = 64
"""Snapshots asked for at once, at most about 1 MB each. Full: the others wait their turn."""

JOBS_MAX: Final = 64
"""Snapshots kept to be sent, at most about 1 MB each. Full: a request is turned away, its sender repeats
it."""

JOB_NS: Final = 2_000_000_000
"""How long a snapshot is kept after the last request for it, so that missing chunks can be sent again."""

BURST_MAX: Final = 32
"""Chunks sent at once. The next ones follow after ``BURST_NS``, so that no receive buffer overflows."""

BURST_NS: Final = 1_000_000

Name = tuple[int, str]
"""A stream of somebody's: host and subject."""


class Asking:
    """One stream that needs a snapshot; ``assembly`` is None until it has been asked for."""

    __slots__ = ("assembly", "attempts")

    def __init__(self) -> None:
        self.assembly: Assembly | None = None
        self.attempts = 0


class Asks:
    """The snapshots that we need."""

    __slots__ = ("_asked_at", "_asks", "_due", "_under_way", "counters", "randomness")

    def __init__(self, randomness: Randomness, counters: ReplicaCounters) -> None:
        self.randomness = randomness
        self.counters = counters
        self._asks: dict[Name, Asking] = {}
        self._asked_at: dict[Name, int] = {}
        self._due: Deadlines[Name] = Deadlines()
        self._under_way = 0

    def __contains__(self, name: Name) -> bool:
        return name in self._asks

    def want(self, name: Name, now: int) -> None:
        """Ask for a snapshot of this stream soon, unless that is under way."""
        if name in self._asks or len(self._asks) >= ASKS_MAX:
            return
        self._asks[name] = Asking()
        not_before = max(now, self._asked_at.pop(name, now))
        self._due.set(name, not_before + self._jitter(JITTER_NS))

    def forget(self, name: Name) -> None:
        """No snapshot of this stream is needed any more."""
        asking = self._asks.pop(name, None)
        if asking is not None:
            self._under_way -= asking.assembly is not None
            self._due.cancel(name)

    def due(self, now: int) -> list[Name]:
        """The streams for which ``request`` is to be called now."""
        return self._due.due(now)

    def request(self, name: Name, stream: InStream, now: int) -> Ask | None:
        """The request to send now; None if it is no longer needed, or not now."""
        asking = self._asks[name]
        if not stream.behind or asking.attempts >= ATTEMPTS_MAX:
            self.counters.abandoned += stream.behind
            self._give_up(name, stream, now)
            return None
        if asking.assembly is None:
            if self._under_way >= ASSEMBLIES_MAX:
                self._due.set(name, now + self._jitter(RETRY_NS))
                return None
            self._under_way += 1
            asking.assembly = Assembly(self.randomness.getrandbits(64))
            stream.hold_tombstones()
        asking.attempts += 1
        self.counters.asked += 1
        self._due.set(name, now + RETRY_NS + self._jitter(JITTER_NS))
        return Ask(name[1], asking.assembly.request, asking.assembly.missing())

    def chunk(self, host: int, chunk: Chunk) -> list[Numbered] | None:
        """Take in a chunk; all rows of the snapshot once it is complete."""
        asking = self._asks.get((host, chunk.subject))
        if asking is None or asking.assembly is None or asking.assembly.request != chunk.request:
            self.counters.ignored[Ignored.UNASKED] += 1
            return None
        return asking.assembly.add(chunk)

    def done(self, name: Name, now: int) -> int:
        """The snapshot of this stream is complete; the seq that it shows."""
        assembly = self._asks[name].assembly
        assert assembly is not None
        self.forget(name)
        self._rest(name, now)
        return assembly.seq

    def next_deadline(self) -> int | None:
        """When ``due`` has something."""
        return self._due.next_deadline()

    def check(self) -> None:
        """Assert that every ask has a deadline and that the bounds hold."""
        assert len(self._asks) <= ASKS_MAX
        assert all(name in self._due for name in self._asks)
        assert len(self._due) == len(self._asks)
        assert self._under_way == sum(asking.assembly is not None for asking in self._asks.values())
        assert self._under_way <= ASSEMBLIES_MAX
        assert len(self._asked_at) <= ASKS_MAX

    def _give_up(self, name: Name, stream: InStream, now: int) -> None:
        if self._asks[name].assembly is not None:
            stream.release_tombstones()
            self._rest(name, now)
        self.forget(name)

    def _rest(self, name: Name, now: int) -> None:
        """Let this stream rest for a while before it is asked for again."""
        if len(self._asked_at) >= ASKS_MAX:
            self._asked_at.clear()
        self._asked_at[name] = now + PAUSE_NS

    def _jitter(self, most: int) -> int:
        return int(most * self.randomness.random())


class Job(NamedTuple):
    """A snapshot that is being sent to one host."""

    address: str
    request: int
    chunks: list[bytes]
    queue: deque[int]
    made_at: int


class Serving:
    """The snapshots of our own rows that others asked for."""

    __slots__ = ("_burst_at", "_jobs", "_kept_until", "counters")

    def __init__(self, counters: ReplicaCounters) -> None:
        self.counters = counters
        self._jobs: dict[Name, Job] = {}
        self._kept_until: Deadlines[Name] = Deadlines()
        self._burst_at: int | None = None

    def asked(self, host: int, address: str, ask: Ask, outbox: Outbox, now: int) -> None:
        """Queue the chunks that ``host``, which wrote from ``address``, asks for."""
        name = (host, ask.subject)
        job = self._jobs.get(name)
        if job is None or job.request != ask.request:
            stream = outbox.stream(ask.subject)
            too_fast = job is not None and now - job.made_at < PAUSE_NS
            if stream is None or too_fast or (job is None and len(self._jobs) >= JOBS_MAX):
                self.counters.turned_away += 1
                return
            # A snapshot shows nothing that has not been said to everybody.
            outbox.flush(ask.subject, now)
            chunks = split(ask.subject, ask.request, stream.seq, stream.rows.values())
            job = Job(address, ask.request, chunks, deque(range(len(chunks))), now)
            self._jobs[name] = job
            self.counters.served += 1
        elif not job.queue:
            wanted = ask.missing or range(len(job.chunks))
            job.queue.extend(index for index in wanted if index < len(job.chunks))
        self._kept_until.set(name, now + JOB_NS)
        if self._burst_at is None:
            self._burst_at = now

    def tick(self, outbox: Outbox, now: int) -> None:
        """Send the next chunks, in turn for each host that waits, and forget old snapshots."""
        for name in self._kept_until.due(now):
            del self._jobs[name]
        if self._burst_at is None or now < self._burst_at:
            return
        waiting = deque(name for name, job in self._jobs.items() if job.queue)
        for _ in range(BURST_MAX):
            if not waiting:
                break
            name = waiting.popleft()
            job = self._jobs[name]
            outbox.direct(name[0], job.address, job.chunks[job.queue.popleft()])
            self.counters.chunks_sent += 1
            if job.queue:
                waiting.append(name)
        self._burst_at = now + BURST_NS if waiting else None

    def clear(self) -> None:
        """Forget all snapshots: their epoch is over."""
        self._jobs.clear()
        self._kept_until = Deadlines()
        self._burst_at = None

    def next_deadline(self) -> int | None:
        """When ``tick`` has something to do."""
        kept = self._kept_until.next_deadline()
        if self._burst_at is None or kept is None:
            return kept
        return min(self._burst_at, kept)

    def check(self) -> None:
        """Assert the bounds, and that whatever waits to be sent has a time for it."""
        assert len(self._jobs) <= JOBS_MAX
        assert all(name in self._kept_until for name in self._jobs)
        assert self._burst_at is not None or not any(job.queue for job in self._jobs.values())
