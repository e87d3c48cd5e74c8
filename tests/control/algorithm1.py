"""Algorithm 1 of the paper, transcribed line by line: one controller a host, R a plain dictionary."""

from collections.abc import Callable
from typing import Literal, NamedTuple


class Message(NamedTuple):
    path: int
    op: Literal["RESERVE", "RELEASE"]
    t: int
    id: tuple[int, int]


class Controller:
    """Keys are ``(t, id)`` with ``id = (host, flow)``, as the paper's id must tell flows of a host apart.

    ``owner_only`` reads "R <- R \\ {p}" as: if the entry is that of the flow which has completed.
    """

    def __init__(self, host: int, paths: int, draw: Callable[[int], int], *, owner_only: bool) -> None:
        self.host = host
        self.K = paths
        self.R: dict[int, tuple[int, tuple[int, int]]] = {}
        self.draw = draw
        self.owner_only = owner_only
        self.k: dict[int, int] = {}
        self.claim: dict[int, tuple[int, tuple[int, int]]] = {}

    def on_flow_arrival(self, flow: int, t: int) -> list[Message]:
        drawn = self.draw(flow) % self.K
        if len(self.R) == self.K:  # line 14
            self.k[flow] = drawn
            self.claim.pop(flow, None)
            return []
        k = min(k for k in range(self.K) if k not in self.R)  # line 17
        self.k[flow] = k
        self.R[k] = self.claim[flow] = (t, (self.host, flow))  # line 19
        return [Message(k, "RESERVE", t, (self.host, flow))]  # line 20

    def on_flow_completion(self, flow: int) -> list[Message]:
        k = self.k.pop(flow)
        t, name = self.claim.pop(flow, (0, (self.host, flow)))
        self.release(k, name)  # line 27
        return [Message(k, "RELEASE", t, name)]  # line 28

    def on_remote_update(self, message: Message, now: int) -> list[Message]:
        p, op, t, name = message
        if op == "RELEASE":
            self.release(p, name)  # line 32
        elif p not in self.R:
            self.R[p] = (t, name)  # line 34
        elif (t, name) < self.R[p]:
            _, (host, flow) = self.R[p]
            self.R[p] = (t, name)  # line 36
            if host == self.host:
                return self.on_flow_arrival(flow, now)  # line 37
        return []

    def release(self, p: int, name: tuple[int, int]) -> None:
        if p in self.R and (not self.owner_only or self.R[p][1] == name):
            del self.R[p]
