"""The agent's configuration file: every key of it, with its type, its default and its meaning."""

from typing import Annotated, Literal

import msgspec

from ark.control.rows import STRIPES_MAX
from ark.fabric.table_reader import UNIT

Meta = msgspec.Meta

Time = Annotated[str, Meta(extra={UNIT: "time"})]
Text = Annotated[str, Meta(min_length=1, max_length=4096)]


class NatsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The messaging system, for ``transport = "nats"``."""

    servers: Annotated[tuple[Text, ...], Meta(description="URLs, nats:// or tls://.")] = (
        "nats://127.0.0.1:4222",
    )
    prefix: Annotated[Text, Meta(description="First part of all subjects, one a cluster.")] = "ark"
    user: Annotated[Text | None, Meta(description="User of this host, with permissions of its own.")] = None
    password_file: Annotated[
        Text | None, Meta(description="Its password, in a file not open to every user.")
    ] = None
    ca_file: Annotated[Text | None, Meta(description="Certificates that servers are checked with.")] = None


class ControlTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How agents talk with each other."""

    transport: Annotated[
        Literal["udp", "multicast", "nats"],
        Meta(description="UDP to each peer, or to a multicast group, or subjects of a NATS cluster."),
    ] = "udp"
    bind: Annotated[
        Text | None,
        Meta(description="Own control address; by default that of the host's first NIC, port 7471."),
    ] = None
    group: Annotated[Text, Meta(description="Multicast group and port.")] = "239.192.74.71:7472"
    lease: Annotated[Time, Meta(description="How long a silent host's reservations count.")] = "3s"
    heartbeat: Annotated[Time, Meta(description="Time between two heartbeats.")] = "250ms"
    batch: Annotated[Time, Meta(description="Longest wait of a row for others in its datagram.")] = "1ms"
    receive_buffer: Annotated[Text, Meta(description="Receive buffer of the control socket.")] = "4 MiB"
    nats: NatsTable = NatsTable()


class PolicyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How paths are chosen; the same on all hosts."""

    name: Annotated[Literal["ark", "paper"], Meta(description="Least loaded links, or Algorithm 1.")] = "ark"
    hold: Annotated[Time, Meta(description="How long long transfers wait for news of others.")] = "1ms"
    min_bytes: Annotated[
        Text | None, Meta(description="Smaller transfers are left alone; by default 10 ms at line rate.")
    ] = None
    stripes: Annotated[int, Meta(ge=1, le=STRIPES_MAX, description="Paths of one transfer.")] = 1
    moves: Annotated[bool, Meta(description="Move at segment ends where that helps.")] = False


class ApiTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where applications ask."""

    socket: Annotated[Text, Meta(description="Unix socket.")] = "/run/ark/agent.sock"
    group: Annotated[Text | None, Meta(description="Group that may use it; by default the agent's own.")] = (
        None
    )


class MetricsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What Prometheus reads."""

    listen: Annotated[Text | None, Meta(description="Address for HTTP; none without it.")] = None


class LogTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is written to standard error, as lines of JSON."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least level written.")
    ] = "info"


class AgentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Top-level keys. Relative file names count from the folder of this file."""

    fabric: Annotated[Text, Meta(description="Fabric file, the same on all hosts.")]
    key_file: Annotated[Text, Meta(description="Cluster keys, in a file not open to every user.")]
    host: Annotated[
        Text | None, Meta(description="Name of this host in the fabric file; by default the machine's.")
    ] = None
    state: Annotated[Text, Meta(description="File that keeps the epoch over restarts.")] = (
        "/var/lib/ark/epoch"
    )
    paths: Annotated[
        Text | None,
        Meta(
            description="Learned source ports (ark discover --out), in place of those of the fabric's hash."
        ),
    ] = None
    dry_run: Annotated[bool, Meta(description="Decide and report, steer nothing.")] = False
    record: Annotated[Text | None, Meta(description="CSV file to which finished transfers are written.")] = (
        None
    )
    peers: Annotated[
        dict[str, Text] | None,
        Meta(description="Control address by host; by default all hosts, at their first NIC, same port."),
    ] = None
    control: ControlTable = ControlTable()
    policy: PolicyTable = PolicyTable()
    api: ApiTable = ApiTable()
    metrics: MetricsTable = MetricsTable()
    log: LogTable = LogTable()
