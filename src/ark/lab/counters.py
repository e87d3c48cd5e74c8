"""Byte counters of links, read over and over while transfers run, as a switch's operator would."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ark.lab.clos import Clos


class Counters:
    """Bytes sent over some links of a lab over time, headers included.

    The files stay open: a switch's namespace is entered once, reading costs microseconds.
    """

    def __init__(self, made: Clos, links: Sequence[int]) -> None:
        self.links = tuple(links)
        self._interfaces = [made.interface(link) for link in links]
        self._nodes = [made.fabric.links[link].source for link in links]
        self._files: dict[str, int] = {}
        self._times_s: list[float] = []
        self._bytes: list[list[int]] = []
        for node in dict.fromkeys(self._nodes):
            with made.inside(node):
                self._files[node] = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, time_s: float) -> None:
        """Take all counters now."""
        counts = {node: _sent(file) for node, file in self._files.items()}
        self._times_s.append(time_s)
        self._bytes.append(
            [counts[node][name] for node, name in zip(self._nodes, self._interfaces, strict=True)]
        )

    def series(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The times of the readings, and the counts of each link (int64[time, link]) since the first."""
        counts = np.array(self._bytes, np.int64).reshape(len(self._bytes), len(self.links))
        return np.array(self._times_s), counts - counts[:1]

    def clear(self) -> None:
        """Forget all readings."""
        self._times_s.clear()
        self._bytes.clear()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _sent(file: int) -> dict[str, int]:
    """Bytes sent by interface. Source: Linux, net/core/net-procfs.c (the ninth number of a line)."""
    text = b""
    while block := os.pread(file, 65_536, len(text)):  # a page at a time
        text += block
    found = {}
    for row in text.decode("ascii").splitlines()[2:]:
        name, _, counts = row.partition(":")
        found[name.strip()] = int(counts.split()[8])
    return found
