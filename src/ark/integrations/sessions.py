"""Which host of the fabric is behind an engine's name for a peer.

Engines name a peer by an address on their side channel, with a port or a scheme: ``10.0.0.8:15403``,
``[fd00::8]:5600``, ``tcp://10.0.0.8:7600``. The agent knows hosts and NICs, by name and by address. Where the
side channel is on a network of its own, ``ARK_PEERS`` says who is who. Where an engine has no such name at
the place that is hooked, ``talking_to`` hands it on.
"""

import contextlib
import contextvars
import ipaddress
import os
from collections.abc import Iterator, Mapping
from typing import Final

from ark.errors import ConfigError, Fault

PEERS: Final = "ARK_PEERS"
"""Environment variable: ``10.1.0.8=h8,10.1.0.9=h9``, an engine's address of a peer and the fabric's name."""

NAME_MAX: Final = 255

_talking_to: Final[contextvars.ContextVar[str | None]] = contextvars.ContextVar("ark_peer", default=None)


class PeerNames:
    """The fabric's name of a peer, or its address where none is given.

    Parameters
    ----------
    names
        Name in the fabric, or address of a NIC, by the address that the engine uses.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = {_address(called) or called: name for called, name in (names or {}).items()}

    def target(self, session: str) -> str | None:
        """What to call the peer of a session when asking the agent; None if no host can be made out."""
        host = host_of(session)
        if host is None:
            return None
        return self._names.get(host, host)


def peers_from(environment: Mapping[str, str] = os.environ) -> PeerNames:
    """The peers that ``ARK_PEERS`` names.

    Raises
    ------
    ConfigError
        If an entry is no ``address=name``.
    """
    names, faults = {}, []
    for entry in filter(None, (part.strip() for part in environment.get(PEERS, "").split(","))):
        address, _, name = (part.strip() for part in entry.partition("="))
        if not address or not 1 <= len(name) <= NAME_MAX:
            faults.append(Fault(PEERS, f"{entry[:60]!r}: write address=name, as in 10.1.0.8=h8"))
        names[address] = name
    if faults:
        raise ConfigError(*faults)
    return PeerNames(names)


def host_of(session: str) -> str | None:
    """The host in an engine's name of a peer, without scheme and port; None if there is none.

    Examples
    --------
    >>> host_of("tcp://10.0.0.8:15403"), host_of("[fd00::8]:5600"), host_of("fd00::8")
    ('10.0.0.8', 'fd00::8', 'fd00::8')
    >>> host_of("[::ffff:10.0.0.8]:15403")  # as a server that listens by IPv6 sees it
    '10.0.0.8'
    """
    rest = session.partition("://")[2] or session
    if rest.startswith("["):
        host = rest[1:].partition("]")[0]
    elif _address(rest):
        host = rest
    else:
        host = rest.partition(":")[0]
    host = _address(host) or host
    return host if 1 <= len(host) <= NAME_MAX and host.isprintable() else None


@contextlib.contextmanager
def talking_to(session: str) -> Iterator[None]:
    """While this lasts, an engine gets to know the peer of ``session``, which it names otherwise later."""
    token = _talking_to.set(session)
    try:
        yield
    finally:
        _talking_to.reset(token)


def peer_at_hand() -> str | None:
    """The session of the peer that is being got to know; None outside of ``talking_to``."""
    return _talking_to.get()


def _address(text: str) -> str | None:
    """An address in its one form, IPv4 within IPv6 as IPv4; None if it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
