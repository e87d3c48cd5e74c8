"""Random numbers of the kernel: xorshift64 (Marsaglia 2003), the same compiled and interpreted."""

import numpy as np

from ark.sim.compilation import kernel
from ark.sim.packet.layout import World


@kernel
def draw(world: World) -> float:
    """Uniform in [0, 1)."""
    clock = world.clock
    x = clock.random
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    clock.random = x
    return float(x >> np.uint64(11)) * 2.0**-53
