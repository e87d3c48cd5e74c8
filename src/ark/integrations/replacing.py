"""Give an engine another class under a name while one of its objects is built, and the old one afterwards.

So only the object that carries KV transfers is ARK's; others that the engine makes of the same class, for
weights or for its own coordination, are left as they are.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

_one_at_a_time: Final = threading.RLock()


@contextlib.contextmanager
def replaced(holder: Any, name: str, value: Any) -> Iterator[None]:
    """While this lasts, ``holder.name`` is ``value``."""
    with _one_at_a_time:
        before = getattr(holder, name)
        setattr(holder, name, value)
        try:
            yield
        finally:
            setattr(holder, name, before)
