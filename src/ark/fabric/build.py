"""Check a blueprint as a whole, number its parts, and make the fabric of it."""

from ipaddress import ip_address

from ark.errors import ConfigError
from ark.fabric.addresses import scheme_addresses
from ark.fabric.blueprint import (
    CABLES_MAX,
    DELAY_MAX_NS,
    HOSTS_MAX,
    NAME,
    NICS_MAX,
    RATE_MAX_BPS,
    SWITCHES_MAX,
    Blueprint,
    CablePlan,
    nic_names,
)
from ark.fabric.fault_list import FaultList
from ark.fabric.nearest import nearest
from ark.fabric.parts import Attachment, Host, Link, Nic, Switch
from ark.fabric.topology import Fabric
from ark.units import quoted


def build(plan: Blueprint) -> Fabric:
    """The fabric of a blueprint.

    Raises
    ------
    ConfigError
        With all that is wrong, each fault at the place that the plan of that part names.
    """
    return _Builder(plan).build()


class _Builder:
    """One blueprint on its way to a fabric: checks first, numbers after."""

    def __init__(self, plan: Blueprint) -> None:
        self.plan = plan
        self.faults = FaultList()
        self.nic_hosts = {name: host for host in plan.hosts for name in nic_names(host)}
        self.switch_plans = {switch.name: switch for switch in plan.switches}

    def build(self) -> Fabric:
        self._check_sizes()
        self._check_names()
        self.faults.raise_if_any()
        self._check_cables()
        self._check_switches()
        self._check_weights()
        addresses = self._addresses()
        prefill, decode = self._roles()
        self.faults.raise_if_any()
        links = self._links()
        attachments, numbers = self._attachments(links)
        hosts = self._hosts(addresses, numbers)
        if prefill is None or decode is None:
            prefill, decode = _default_roles(hosts, attachments, prefill, decode)
        return Fabric(
            self.plan.name,
            hosts=hosts,
            switches=self._switches(),
            links=links,
            attachments=attachments,
            prefill=prefill,
            decode=decode,
            host_hash=self.plan.host_hash or self.plan.hash,
        )

    def _check_sizes(self) -> None:
        counts = (
            ("hosts", len(self.plan.hosts), HOSTS_MAX),
            ("switches", len(self.plan.switches), SWITCHES_MAX),
            ("links", len(self.plan.cables), CABLES_MAX),
        )
        for what, count, most in counts:
            if not 1 <= count <= most:
                self.faults.add("", f"a fabric has 1 to {most:,} {what}, not {count:,}")
        for host in self.plan.hosts:
            if not 1 <= host.nics <= NICS_MAX:
                self.faults.add(host.where, f"a host has 1 to {NICS_MAX} NICs, not {host.nics}")
        self.faults.raise_if_any()

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        entries = [(name, host.where) for host in self.plan.hosts for name in {host.name, *nic_names(host)}]
        entries += [(switch.name, switch.where) for switch in self.plan.switches]
        for name, where in entries:
            if not NAME.fullmatch(name):
                self.faults.add(
                    where,
                    f"{quoted(name)} is no name; use letters, digits and _ . : - inside, at most 64 in all",
                )
            elif name in seen:
                before = f", first in {seen[name]}" if seen[name] else ""
                self.faults.add(where, f'the name "{name}" is used twice{before}')
            else:
                seen[name] = where

    def _check_cables(self) -> None:
        cabled: set[tuple[str, str]] = set()
        for cable in self.plan.cables:
            self._check_ends(cable)
            nics = [end for end in cable.ends if end in self.nic_hosts]
            if cable.ends[0] == cable.ends[1]:
                self.faults.add(cable.where, f"a link needs two ends, not twice {quoted(cable.ends[0])}")
            elif len(nics) == 2:
                self.faults.add(
                    cable.where, f'"{nics[0]}" and "{nics[1]}" are both NICs; one end must be a switch'
                )
            elif nics:
                self._check_nic_cable(cable, nics[0], cabled)
            if not 1 <= cable.rate_bps <= RATE_MAX_BPS:
                self.faults.add(cable.where, f"a rate is 1 bit/s to 1 Pbit/s, not {cable.rate_bps} bit/s")
            if not 0 <= cable.delay_ns <= DELAY_MAX_NS:
                self.faults.add(cable.where, f"a delay is 0 to 10 s, not {cable.delay_ns} ns")
        used = {end for cable in self.plan.cables for end in cable.ends}
        for name, host in self.nic_hosts.items():
            if name not in used:
                self.faults.add(host.where, f'"{name}" has no link; add one to a switch, or take it out')

    def _check_ends(self, cable: CablePlan) -> None:
        for end in cable.ends:
            if end not in self.nic_hosts and end not in self.switch_plans:
                known = [*self.switch_plans, *self.nic_hosts]
                self.faults.add(cable.where, nearest(end, known, "end", "the fabric has"))

    def _check_nic_cable(self, cable: CablePlan, nic: str, cabled: set[tuple[str, str]]) -> None:
        switch = cable.ends[1] if cable.ends[0] == nic else cable.ends[0]
        if (nic, switch) in cabled:
            self.faults.add(
                cable.where,
                f'"{nic}" has two links to "{switch}"; write one of the summed rate, or give two NICs',
            )
        if cable.lag is not None:
            self.faults.add(cable.where, f'"{nic}" is a NIC; a lag joins links between two switches only')
        cabled.add((nic, switch))

    def _check_switches(self) -> None:
        neighbours: dict[str, set[str]] = {name: set() for name in self.switch_plans}
        for cable in self.plan.cables:
            a, b = cable.ends
            if a in neighbours and b in neighbours:
                neighbours[a].add(b)
                neighbours[b].add(a)
        for switch in self.plan.switches:
            order = switch.next_hop_order
            if isinstance(order, tuple):
                for name in order:
                    if name not in neighbours[switch.name]:
                        known = sorted(neighbours[switch.name])
                        self.faults.add(
                            f"{switch.where}.next_hop_order" if switch.where else "",
                            nearest(name, known, "neighbour", f"{switch.name} has"),
                        )

    def _check_weights(self) -> None:
        """Weights go by the name of a neighbour; one that names no switch would count for nothing."""
        plan = self.plan
        specs = [("", "hash", plan.hash), ("", "lag_hash", plan.lag_hash), ("", "host_hash", plan.host_hash)]
        for switch in plan.switches:
            specs += [(switch.where, "hash", switch.hash), (switch.where, "lag_hash", switch.lag_hash)]
        for where, key, spec in specs:
            for name in spec.weights if spec is not None else ():
                if name not in self.switch_plans:
                    place = f"{where}.{key}.weights" if where else f"{key}.weights"
                    self.faults.add(place, nearest(name, self.switch_plans, "switch", "the fabric has"))

    def _addresses(self) -> list[str]:
        count = len(self.nic_hosts)
        try:
            wanted = iter(scheme_addresses(self.plan.addresses, count))
        except ConfigError as error:
            self.faults.take(error)
            return []
        addresses: list[str] = []
        for host in self.plan.hosts:
            if host.addresses and len(host.addresses) != host.nics:
                self.faults.add(
                    host.where, f"{len(host.addresses)} addresses for {host.nics} NICs; give one for each NIC"
                )
            of_scheme = [next(wanted) for _ in range(host.nics)]
            addresses += host.addresses if len(host.addresses) == host.nics else of_scheme
        self._check_addresses(addresses)
        return addresses

    def _check_addresses(self, addresses: list[str]) -> None:
        first: dict[str, str] = {}
        versions = set()
        for position, (nic, host) in enumerate(self.nic_hosts.items()):
            try:
                address = ip_address(addresses[position])
            except ValueError:
                self.faults.add(host.where, f"{quoted(addresses[position])} is no IPv4 or IPv6 address")
                continue
            addresses[position] = text = str(address)
            versions.add(address.version)
            if text in first:
                self.faults.add(
                    host.where, f'"{nic}" has the address {text} of "{first[text]}"; each NIC needs its own'
                )
            first[text] = nic
        if len(versions) > 1:
            self.faults.add("", "some addresses are IPv4 and some IPv6; a fabric has one family")

    def _roles(self) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
        plan = self.plan
        hosts = {host.name for host in plan.hosts}
        for role, names in (("prefill", plan.prefill), ("decode", plan.decode)):
            for name in names or ():
                if name not in hosts:
                    known = [host.name for host in plan.hosts]
                    self.faults.add(role, nearest(name, known, "host", "the fabric has"))
        both = sorted(set(plan.prefill or ()) & set(plan.decode or ()))
        if both:
            more = f" and {len(both) - 1} more" if len(both) > 1 else ""
            self.faults.add("decode", f'"{both[0]}"{more} is prefill too; a host has one role')
        return plan.prefill, plan.decode

    def _links(self) -> list[Link]:
        down = {switch.name for switch in self.plan.switches if not switch.up}
        links: list[Link] = []
        for cable in self.plan.cables:
            a, b = cable.ends
            up = cable.up and a not in down and b not in down
            for source, target in ((a, b), (b, a)):
                links.append(Link(len(links), source, target, cable.rate_bps, cable.delay_ns, up, cable.lag))
        return links

    def _attachments(self, links: list[Link]) -> tuple[list[Attachment], dict[str, int]]:
        position = {switch.name: place for place, switch in enumerate(self.plan.switches)}
        ports: dict[str, list[Link]] = {name: [] for name in self.nic_hosts}
        for link in links:
            if link.source in ports:
                ports[link.source].append(link)
        numbers: dict[str, int] = {}
        found: dict[tuple[tuple[str, ...], tuple[str, ...]], Attachment] = {}
        for nic, of_nic in ports.items():
            of_nic.sort(key=lambda link: position[link.target])
            switches = tuple(link.target for link in of_nic)
            live = tuple(link.target for link in of_nic if link.up)
            attachment = found.setdefault((switches, live), Attachment(len(found), switches, live))
            numbers[nic] = attachment.index
        return list(found.values()), numbers

    def _hosts(self, addresses: list[str], attachments: dict[str, int]) -> list[Host]:
        hosts: list[Host] = []
        index = 0
        for host in self.plan.hosts:
            nics = []
            for name in nic_names(host):
                nics.append(Nic(index, name, host.name, addresses[index], attachments[name]))
                index += 1
            hosts.append(Host(host.name, tuple(nics)))
        return hosts

    def _switches(self) -> list[Switch]:
        plan = self.plan
        made = []
        for position, switch in enumerate(plan.switches):
            ecmp = switch.hash or plan.hash
            made.append(
                Switch(
                    name=switch.name,
                    kind=switch.kind,
                    node_id=len(self.nic_hosts) + position if switch.node_id is None else switch.node_id,
                    hash=ecmp,
                    lag_hash=switch.lag_hash or plan.lag_hash or ecmp,
                    next_hop_order=switch.next_hop_order or plan.next_hop_order,
                    up=switch.up,
                )
            )
        return made


def _default_roles(
    hosts: list[Host],
    attachments: list[Attachment],
    prefill: tuple[str, ...] | None,
    decode: tuple[str, ...] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The usual halves: of the leaves, else of the hosts; where one role is given, the rest is the other."""
    names = [host.name for host in hosts]
    if prefill is not None:
        return prefill, tuple(name for name in names if name not in set(prefill))
    if decode is not None:
        return tuple(name for name in names if name not in set(decode)), decode
    leaf_of = [attachments[host.nics[0].attachment].switches for host in hosts]
    leaves = list(dict.fromkeys(leaf_of))
    if len(leaves) % 2:
        half = len(names) // 2
        return tuple(names[:half]), tuple(names[half:])
    first = set(leaves[: len(leaves) // 2])
    return (
        tuple(name for name, leaf in zip(names, leaf_of, strict=True) if leaf in first),
        tuple(name for name, leaf in zip(names, leaf_of, strict=True) if leaf not in first),
    )
