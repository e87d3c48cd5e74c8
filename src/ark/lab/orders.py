"""What the lab tells the process of a host, and what that answers: JSON, one message a line."""

from typing import Final

import msgspec

PORT: Final = 4791
"""Where every host takes transfers; that of RoCE, which hash models assume unless told otherwise."""


class Order(msgspec.Struct, frozen=True):
    """One transfer to send.

    Parameters
    ----------
    transfer
        Its number, which says which bytes it carries.
    target, address
        The host that receives, and its address.
    start_ns
        When it could begin, counted from the start of the run.
    source_port
        The port to send from; None to ask ARK.
    checksum
        Of its bytes, worked out beforehand.
    """

    transfer: int
    target: str
    address: str
    size_bytes: int
    start_ns: int
    source_port: int | None
    checksum: int


class Warm(msgspec.Struct, frozen=True, tag="warm"):
    """Ask ARK once for lanes to these hosts, so that the agent knows their ports before time counts."""

    targets: tuple[str, ...]


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Send these; ``begin_ns`` is the start of the run on the monotonic clock that all processes share."""

    begin_ns: int
    orders: tuple[Order, ...]


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The process listens, or has done what it was told before."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """What became of one transfer.

    ``fct_ns`` counts from ``Order.start_ns`` to the moment at which the sender knew of the last byte's
    arrival; ``late_ns`` is how much later than that the sender woke up, ``reserve_ns`` how long ARK's answer
    took. ``path`` is None where ARK had no preference or was not asked. ``error`` is empty where all went
    well and length and checksum are right.
    """

    transfer: int
    source_port: int
    path: int | None
    kind: str
    reason: str
    late_ns: int
    reserve_ns: int
    fct_ns: int
    retransmits: int
    error: str


Command = Warm | Run
Answer = Ready | Done

commands: Final = msgspec.json.Decoder(Command)
answers: Final = msgspec.json.Decoder(Answer)
_encoder: Final = msgspec.json.Encoder()


def line(message: Command | Answer) -> bytes:
    """A message as one line."""
    return _encoder.encode(message) + b"\n"
