"""Read the agent's configuration with the fabric and keys it names, and say all that is wrong at once."""

import grp
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from ark.agent.addresses import PORT, SocketAddress, format_address, parse_address
from ark.agent.key_file import load_keys
from ark.agent.learned_paths import load_paths
from ark.agent.nats_settings import NatsSettings, nats_settings
from ark.agent.ports import Learned, Way
from ark.agent.schema import AgentFile, ControlTable, PolicyTable
from ark.agent.text_file import read_text
from ark.control.lease import HEARTBEAT_NS
from ark.control.policy import Policy
from ark.control.wire import Keys
from ark.errors import ConfigError, Fault
from ark.fabric import Fabric, load_fabric
from ark.fabric.fault_list import FaultList
from ark.fabric.parts import Host
from ark.fabric.table_reader import read_table
from ark.units import parse_size, parse_time, quoted

LEASE_BEATS_MIN: Final = 3
"""Least heartbeats a lease: with fewer, one lost datagram and a busy moment end a live host's lease."""

UNICAST_PEERS_MAX: Final = 256
"""Peers up to which unicast is meant (rule 19)."""

PEERS_MAX: Final = 16_384


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """A checked configuration.

    Attributes
    ----------
    host, fabric
        Who we are, and where.
    paths, learned
        The file of learned paths, and its maps, which replace those of the fabric's hash.
    peers
        Control address of each other host.
    bind
        Our own control address.
    receive_buffer_bytes
        What is asked of the operating system.
    socket_gid
        Group of the Unix socket; None for the agent's own.
    """

    path: Path
    host: Host
    fabric: Fabric
    keys: Keys
    state: Path
    paths: Path | None
    learned: Mapping[Way, Learned]
    dry_run: bool
    record: Path | None
    transport: Literal["udp", "multicast", "nats"]
    nats: NatsSettings
    bind: SocketAddress
    group: SocketAddress
    peers: Mapping[str, SocketAddress]
    lease_ns: int
    heartbeat_ns: int
    batch_ns: int
    receive_buffer_bytes: int
    policy: Policy
    socket: Path
    socket_gid: int | None
    metrics: SocketAddress | None
    log_level: str

    @property
    def warnings(self) -> list[str]:
        """What is allowed and yet unwise."""
        found = []
        if self.transport == "udp" and len(self.peers) > UNICAST_PEERS_MAX:
            found.append(
                f"{len(self.peers)} peers: unicast is meant for up to {UNICAST_PEERS_MAX}; "
                'set control.transport = "multicast" or "nats"'
            )
        if self.dry_run:
            found.append("dry run: transfers are decided and announced, none is steered")
        return found


def load_config(path: Path) -> AgentConfig:
    """The configuration in a file, with the fabric and the keys it names.

    Raises
    ------
    ConfigError
        With all that is wrong in all three files.
    """
    table = _parsed(path)
    reader = _Reader(path)
    try:
        found = reader.read(table)
    except ConfigError as error:
        reader.take(error)
        found = None
    if reader.faults:
        raise ConfigError(*reader.faults)
    assert found is not None
    return found


def _parsed(path: Path) -> dict[str, object]:
    text = read_text(path, "an agent's configuration")
    try:
        parsed = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(Fault(str(path), f"is no valid TOML: {error}")) from None
    except (RecursionError, ValueError):
        raise ConfigError(Fault(str(path), "has a value nested too deep or a number too long")) from None
    assert isinstance(parsed, dict), "a TOML document is a table"
    return parsed


class _Reader:
    """One reading: gathers faults and goes on where the rest can still be judged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[Fault | str] = []

    def take(self, error: ConfigError, where: str = "") -> None:
        """Note the faults of an error; those without a file get the place in ours."""
        for fault in error.faults:
            if isinstance(fault, Fault):
                self.faults.append(fault)
            else:
                self.faults.append(Fault(f"{self.path}: {where}" if where else str(self.path), fault))

    def read(self, table: dict[str, object]) -> AgentConfig | None:
        file = self._file_of(table)
        if file is None:
            return None
        keys = self._keys(file)
        fabric = self._fabric(file)
        receive_buffer = self._size("control.receive_buffer", file.control.receive_buffer)
        metrics = self._metrics(file.metrics.listen)
        gid = self._gid(file.api.group)
        lease_ns, heartbeat_ns = self._lease(file.control)
        group = self._address("control.group", file.control.group, None)
        nats = self._nats(file)
        host = None if fabric is None else self._host(file, fabric)
        if fabric is None or host is None:
            return None
        paths = None if file.paths is None else self._file(file.paths)
        learned = {} if paths is None else self._learned(paths, fabric)
        bind = self._bind(file, host)
        peers = self._peers(file, fabric, host, bind)
        policy = self._policy(file.policy, fabric, host)
        if self.faults:
            return None
        assert keys is not None
        assert nats is not None
        assert group is not None
        assert policy is not None
        return AgentConfig(
            path=self.path,
            host=host,
            fabric=fabric,
            keys=keys,
            state=self._file(file.state),
            paths=paths,
            learned=learned,
            dry_run=file.dry_run,
            record=None if file.record is None else self._file(file.record),
            transport=file.control.transport,
            nats=nats,
            bind=bind,
            group=group,
            peers=peers,
            lease_ns=lease_ns,
            heartbeat_ns=heartbeat_ns,
            batch_ns=parse_time(file.control.batch),
            receive_buffer_bytes=receive_buffer,
            policy=policy,
            socket=self._file(file.api.socket),
            socket_gid=gid,
            metrics=metrics,
            log_level=file.log.level,
        )

    def _file_of(self, table: dict[str, object]) -> AgentFile | None:
        """The table as its schema has it; None if no part of it can be judged."""
        keys_of_file = FaultList()
        file = read_table(table, AgentFile, keys_of_file)
        try:
            keys_of_file.raise_if_any()
        except ConfigError as error:
            for fault in error.faults:
                where = f"{self.path}: {fault.where}" if isinstance(fault, Fault) else str(self.path)
                self.faults.append(Fault(where, fault.what if isinstance(fault, Fault) else fault))
        return file

    def _lease(self, control: ControlTable) -> tuple[int, int]:
        """Nanoseconds that a lease lasts, and between two heartbeats."""
        lease_ns, heartbeat_ns = parse_time(control.lease), parse_time(control.heartbeat)
        if heartbeat_ns < HEARTBEAT_NS // 250 or lease_ns < LEASE_BEATS_MIN * heartbeat_ns:
            self._fault(
                "control.lease",
                f"{control.lease} with a heartbeat every {control.heartbeat}: a lease lasts at "
                f"least {LEASE_BEATS_MIN} heartbeats, and a heartbeat at least 1ms",
            )
        return lease_ns, heartbeat_ns

    def _fault(self, where: str, what: str) -> None:
        self.faults.append(Fault(f"{self.path}: {where}", what))

    def _file(self, name: str) -> Path:
        return self.path.parent / name

    def _keys(self, file: AgentFile) -> Keys | None:
        try:
            return load_keys(self._file(file.key_file))
        except ConfigError as error:
            self.take(error)
            return None

    def _fabric(self, file: AgentFile) -> Fabric | None:
        path = self._file(file.fabric)
        try:
            return load_fabric(read_text(path, "a fabric file"), str(path))
        except ConfigError as error:
            self.take(error)
            return None

    def _learned(self, path: Path, fabric: Fabric) -> dict[Way, Learned]:
        try:
            return load_paths(path, fabric)
        except ConfigError as error:
            self.take(error)
            return {}

    def _host(self, file: AgentFile, fabric: Fabric) -> Host | None:
        name = socket.gethostname() if file.host is None else file.host
        try:
            return fabric.host(name)
        except ConfigError as error:
            hint = (
                "" if file.host else "; this machine is called so, write host = the name in the fabric file"
            )
            self._fault("host", f"{error}{hint}")
            return None

    def _bind(self, file: AgentFile, host: Host) -> SocketAddress:
        default = (host.nics[0].address, PORT)
        if file.control.bind is None:
            return default
        return self._address("control.bind", file.control.bind, PORT) or default

    def _peers(
        self, file: AgentFile, fabric: Fabric, host: Host, bind: SocketAddress
    ) -> dict[str, SocketAddress]:
        if file.peers is None:
            return {
                other.name: (other.nics[0].address, bind[1])
                for other in fabric.hosts
                if other.name != host.name
            }
        peers: dict[str, SocketAddress] = {}
        used = {format_address(bind): host.name}
        for name, text in file.peers.items():
            where = f"peers.{name if name.isidentifier() else quoted(name)}"
            try:
                fabric.host(name)
            except ConfigError as error:
                self._fault(where, str(error))
            address = self._address(where, text, PORT)
            if address is None or name == host.name:
                continue
            other = used.setdefault(format_address(address), name)
            if other != name:
                self._fault(where, f"{quoted(text)} is the address of {other} too; each host has its own")
            peers[name] = address
        if len(peers) > PEERS_MAX:
            self._fault("peers", f"has {len(peers):,} hosts; allowed are {PEERS_MAX:,}")
        return peers

    def _policy(self, table: PolicyTable, fabric: Fabric, host: Host) -> Policy | None:
        rates = [
            fabric.links[out].rate_bps for nic in host.nics for out, _ in fabric.ports(nic)
        ]  # of dual-port NICs each port counts alone: a flow takes one
        min_bytes = None if table.min_bytes is None else self._size("policy.min_bytes", table.min_bytes)
        try:
            return Policy(
                name=table.name,
                line_rate_bps=min(rates),
                hold_ns=parse_time(table.hold),
                min_bytes=min_bytes,
                stripes=table.stripes,
                moves=table.moves,
            )
        except ConfigError as error:
            self.take(error, "policy")
            return None

    def _size(self, where: str, text: str) -> int:
        try:
            return parse_size(text)
        except ConfigError as error:
            self._fault(where, str(error))
            return 0

    def _address(self, where: str, text: str, port: int | None) -> SocketAddress | None:
        try:
            return parse_address(text, port=port)
        except ConfigError as error:
            self._fault(where, str(error))
            return None

    def _nats(self, file: AgentFile) -> NatsSettings | None:
        try:
            return nats_settings(file.control, self.path)
        except ConfigError as error:
            self.take(error)
            return None

    def _metrics(self, text: str | None) -> SocketAddress | None:
        return None if text is None else self._address("metrics.listen", text, None)

    def _gid(self, name: str | None) -> int | None:
        if name is None:
            return None
        try:
            return grp.getgrnam(name).gr_gid
        except KeyError:
            self._fault("api.group", f"{quoted(name)} is no group of this machine; run: groupadd")
            return None
