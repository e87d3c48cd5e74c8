"""Read what a switch's own calculator says: a table of packets with their next hops.

Such calculators are ``cl-ecmpcalc`` (Cumulus), ``show ip ecmp-egress-port`` (SONiC on Spectrum), ``show
forwarding-options load-balance`` (Junos) and ``show routing hash`` (NX-OS); whoever runs them over some
hundred source ports writes one line each.
"""

from collections.abc import Mapping
from typing import Final

from ark.discover.chains import finding_of
from ark.discover.names import NAME_MAX, canonical, rows_of
from ark.discover.numbering import Hops
from ark.discover.probe import HOPS_MAX, Flow
from ark.discover.search import Finding
from ark.errors import ConfigError
from ark.fabric.fault_list import FaultList
from ark.fabric.five_tuple import TCP, UDP
from ark.fabric.nearest import nearest
from ark.units import quoted

COLUMNS: Final = ("src", "dst", "sport", "dport", "next_hop")
_PROTOCOLS: Final = {"udp": UDP, "tcp": TCP, "17": UDP, "6": TCP, "": UDP}


class _Table:
    """The rows so far: for each packet, what each switch does with it, and on which line that stands."""

    def __init__(self, file_name: str, names: Mapping[str, str]) -> None:
        self.faults = FaultList()
        self.packets: dict[Flow, dict[str, tuple[str, int]]] = {}
        self._file = file_name
        self._names = names

    def add(self, line: int, row: Mapping[str, str]) -> None:
        src, dst = self._address(line, row, "src"), self._address(line, row, "dst")
        sport, dport = self._port(line, row, "sport"), self._port(line, row, "dport")
        proto = _PROTOCOLS.get(row.get("proto", "").lower())
        if proto is None:
            self._fault(line, "proto", nearest(row["proto"], ("udp", "tcp"), "protocol", "known are"))
        switch, following = self._name(line, row, "switch"), self._name(line, row, "next_hop")
        if following == "":
            self._fault(line, "next_hop", "is empty; write the neighbour's name or address")
        if src is None or dst is None or sport is None or dport is None:
            return
        if proto is None or switch is None or not following:
            return
        if (":" in src) != (":" in dst):
            self._fault(line, "dst", f"{dst} is not of the family of {src}")
            return
        said = self.packets.setdefault(Flow(src, dst, proto, sport, dport), {})
        other, at = said.setdefault(switch, (following, line))
        if other != following:
            self._fault(
                line, "next_hop", f"{quoted(following)}, but line {at} says {quoted(other)} of this packet"
            )

    def chain(self, flow: Flow) -> Hops:
        """The switches on the way of a packet, from the first that was asked."""
        said = self.packets[flow]
        reached = {following for following, _ in said.values()}
        starts = [switch for switch in said if switch not in reached]
        line = min(line for _, line in said.values())
        chain: list[str] = starts[:1]
        while chain and chain[-1] in said and len(chain) <= HOPS_MAX:
            chain.append(said[chain[-1]][0])
        if len(starts) != 1 or len(chain) != len(said) + 1:
            what = f"the {len(said)} switches asked about this packet are not one after the other"
            self._fault(
                line, "switch", f"{what}: each next_hop must be the switch of another row, or the last"
            )
        return tuple(hop or None for hop in chain)

    def _fault(self, line: int, column: str, what: str) -> None:
        self.faults.add(f"{self._file}:{line}: {column}", what)

    def _address(self, line: int, row: Mapping[str, str], column: str) -> str | None:
        address = canonical(row[column])
        if address is None:
            self._fault(line, column, f"{quoted(row[column])} is no IPv4 or IPv6 address")
        return address

    def _port(self, line: int, row: Mapping[str, str], column: str) -> int | None:
        text = row[column]
        if text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 0xFFFF:
            return int(text)
        self._fault(line, column, f"{quoted(text)} is no port; write 0 to 65535")
        return None

    def _name(self, line: int, row: Mapping[str, str], column: str) -> str | None:
        text = row.get(column, "")
        if len(text) > NAME_MAX or not text.isprintable():
            self._fault(line, column, f"{quoted(text)} is no name; write at most {NAME_MAX} characters")
            return None
        return self._names.get(canonical(text) or text, text)


def read_calculator(text: str, file_name: str, *, names: Mapping[str, str]) -> list[Finding]:
    """What the table says about each pair.

    Parameters
    ----------
    text
        CSV with the columns ``src,dst,sport,dport,next_hop`` and, where wanted, ``proto`` (udp) and
        ``switch``: the one that was asked, needed where several decide in a row. Others are ignored.
    file_name
        For messages.
    names
        The switch that an address belongs to; other next hops are names themselves.

    Raises
    ------
    ConfigError
        With all faults of the table.
    """
    table = _Table(file_name, names)
    for line, row in rows_of(text, file_name, COLUMNS):
        table.add(line, row)
    table.faults.raise_if_any()
    pairs: dict[Flow, dict[int, Hops]] = {}
    for flow in table.packets:
        pair = Flow(flow.src, flow.dst, flow.proto, 0, flow.dport)
        pairs.setdefault(pair, {})[flow.sport] = table.chain(flow)
    for pair, chains in pairs.items():
        if len({len(chain) for chain in chains.values()}) > 1:
            table.faults.add(
                file_name, f"{pair.src} to {pair.dst}: some packets cross more of the switches than others"
            )
    table.faults.raise_if_any()
    if not pairs:
        raise ConfigError(f"{file_name}: has no rows; write one a packet with {','.join(COLUMNS)}")
    return [finding_of(pair, chains) for pair, chains in pairs.items()]
