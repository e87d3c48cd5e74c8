"""What the lab needs of the kernel, said by name where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from ark.errors import LabError


@contextmanager
def needs(what: str, option: str) -> Iterator[None]:
    """Turn a refusal of the kernel inside of the block into what people can act on.

    Raises
    ------
    LabError
        If the kernel refused something over netlink; ``option`` names its configuration for that.
    """
    from pyroute2 import NetlinkError  # noqa: PLC0415 - takes most of a second to import

    try:
        yield
    except NetlinkError as error:
        code, *words = error.args
        why = str(words[0]) if words else str(code)
        raise LabError(f"this kernel refuses {what}: {why}; the lab needs a kernel with {option}") from None
