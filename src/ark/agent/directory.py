"""Which NICs a client means: it names hosts, NICs or addresses, and may leave its own side to us."""

from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from ark.errors import ConfigError
from ark.fabric import Fabric, Nic
from ark.fabric.parts import Host
from ark.units import quoted

PAIRS_MAX: Final = 16_384
"""Answers kept for reuse; when they are more, all are forgotten and found again."""


class Pair(NamedTuple):
    """The two NICs of a transfer."""

    source: Nic
    target: Nic


class Directory:
    """Finds NICs by what clients call them.

    Without a NIC of our own being named, it is the one on the rail of the target's NIC, or the first; a
    target host with several NICs receives on the rail of ours, or on its last NIC if it has fewer.
    """

    def __init__(self, fabric: Fabric, host: Host) -> None:
        self._fabric = fabric
        self._host = host
        self._nics = {nic.name: nic for nic in fabric.nics} | {
            _canonical(nic.address): nic for nic in fabric.nics
        }
        self._hosts = {other.name: other for other in fabric.hosts}
        self._pairs: dict[tuple[str, str], Pair] = {}

    def pair(self, target: str, nic: str) -> Pair:
        """The NICs for a transfer to ``target``, from ``nic`` if that is not empty.

        Raises
        ------
        ConfigError
            If one is unknown, or both are on this host.
        """
        found = self._pairs.get((target, nic))
        if found is None:
            if len(self._pairs) >= PAIRS_MAX:
                self._pairs.clear()
            found = self._pairs[target, nic] = self._find(target, nic)
        return found

    def _find(self, target: str, nic: str) -> Pair:
        known = self._nic(target)
        if known is not None:
            source = self._own(nic) if nic else self._on_rail(self._host, self._rail(known))
        else:
            other = self._hosts.get(target) or self._fabric.host(target)
            source = self._own(nic) if nic else self._host.nics[0]
            known = self._on_rail(other, self._rail(source))
        if known.host == self._host.name:
            raise ConfigError(f"{quoted(target)} is this host; nothing crosses the fabric")
        return Pair(source, known)

    def _nic(self, called: str) -> Nic | None:
        return self._nics.get(called) or self._nics.get(_canonical(called))

    def _own(self, nic: str) -> Nic:
        found = self._nic(nic)
        if found is None and nic.isascii() and nic.isdigit() and int(nic[:6]) < len(self._host.nics):
            found = self._host.nics[int(nic)]
        if found is None or found.host != self._host.name:
            own = ", ".join(f"{card.name} ({card.address})" for card in self._host.nics)
            raise ConfigError(f"{quoted(nic)} is no NIC of this host; it has {own}")
        return found

    def _rail(self, nic: Nic) -> int:
        return self._hosts[nic.host].nics.index(nic)

    def _on_rail(self, host: Host, rail: int) -> Nic:
        return host.nics[min(rail, len(host.nics) - 1)]


def _canonical(text: str) -> str:
    """An address in its one form, IPv4 within IPv6 (of dual-stack sockets) as IPv4; other text as it is."""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
