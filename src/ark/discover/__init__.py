"""Learn on a live fabric which source ports lead to which path, and notice when that changes.

The machines that decide what to probe are pure; ``ark.discover.live`` alone touches sockets and the clock.
"""

from ark.discover.learned import LearnedFile, LearnedMap, LearnedPath, read_learned, write_learned
from ark.discover.watch import State, Watch

__all__ = ["LearnedFile", "LearnedMap", "LearnedPath", "State", "Watch", "read_learned", "write_learned"]
