"""The constants of a packet-level simulation, and the published sets of them.

A preset is everything that a public simulator or vendor ships: packet sizes, window, DCQCN, ECN and buffer.
Which one runs matters as much as the load-balancing scheme, so :func:`describe` echoes all of it beside the
results. ``dataclasses.replace`` changes any constant.

Sources: SimAI's ns-3 and its ``SimAI.conf`` (simai), ConWeave's ns-3 and ``run.py`` (conweave), Zhu et al.,
SIGCOMM 2015 (dcqcn-paper), defaults of the firmware as ``mlxconfig`` prints them (nvidia), HPCC's ``run.py``
(hpcc-scripts). Where a source leaves a value open, the comment in the preset says what stands in.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal

from ark.errors import ConfigError, Fault
from ark.sim.packet.leaves import Leaves

PRESETS: Final = ("simai", "conweave", "dcqcn-paper", "nvidia", "hpcc-scripts")

Control = Literal["dcqcn", "hpcc", "swift", "none"]
Window = Literal["variable", "fixed", "none"]

PAYLOAD_MAX: Final = 65_536
MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Dcqcn:
    """DCQCN at the sender and the receiver; ``ark.sim.packet.dcqcn`` describes the algorithm."""

    gain: float = 1 / 256
    alpha_interval_ns: int = 1_000
    cut_interval_ns: int = 4_000
    """Time between looks for CNPs; 0: each CNP cuts."""
    increase_interval_ns: int = 900_000
    increase_bytes: int = 0
    """Byte counter; 0: none."""
    recovery_stages: int = 1
    additive_bps: float = 50e6
    additive_share: float = 0.0
    """Part of the step that grows with the line rate, as a share of it."""
    hyper_bps: float = 100e6
    hyper_share: float = 0.0
    rate_min_bps: float = 100e6
    clamp_target: bool = False
    first_cnp_share: float = 1.0
    """Rate at the first CNP, as a share of the rate before."""
    cut_max: float = 1.0
    """Largest share of the rate that one cut takes."""
    cnp_interval_ns: int = 0
    """The receiver sends at most one CNP per flow in this time; 0: one per marked packet."""


@dataclass(frozen=True, slots=True)
class Ecn:
    """Marking thresholds in bytes: those of ``table`` for its rates, else in proportion to the rate."""

    table: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """Rate in bit/s to (lower threshold, upper threshold, probability at the upper)."""
    min_bytes: int = 400_000
    """At 100 Gbit/s."""
    max_bytes: int = 1_600_000
    share: float = 0.2
    proportional: bool = True
    """False: the same thresholds at every rate."""

    def thresholds(self, rate_bps: int) -> tuple[int, int, float]:
        """Lower and upper threshold and the probability at the upper, for a link of ``rate_bps``."""
        if rate_bps in self.table:
            return self.table[rate_bps]
        scale = rate_bps / 100e9 if self.proportional else 1.0
        return round(self.min_bytes * scale), round(self.max_bytes * scale), self.share


@dataclass(frozen=True, slots=True)
class Buffer:
    """Shared buffer and PFC of every switch; ``ark.sim.packet.pfc`` describes the rules."""

    pfc: bool = True
    bytes: int = 32 * MIB
    reserve_bytes: int = 4_096
    """Per port and priority."""
    hysteresis_bytes: int = 3_072
    headroom_delays: float = 3.0
    """Headroom of a port, in bytes that its link carries in its one-way delay ..."""
    headroom_packets: int = 0
    """... plus this many full packets."""
    pool_first: bool = False
    """What comes after a pause draws on the pool while that has room (ConWeave), not at once on the headroom
    (SimAI)."""
    threshold_share: float = 1 / 8
    """Share of the free pool that an account may hold; ports faster than the NICs get twice as much for each
    doubling, up to all of it."""


@dataclass(frozen=True, slots=True)
class Hpcc:
    """HPCC; ``run.py``: additive step 10 Mbit/s for each 25 Gbit/s of line rate."""

    utilisation_target: float = 0.95
    stages_max: int = 0
    additive_share: float = 10e6 / 25e9
    telemetry_bytes: int = 42
    """Bytes that the INT header adds to a data packet."""


@dataclass(frozen=True, slots=True)
class Swift:
    """Swift; target delay and flow scaling as in the paper's testbed, steps as in htsim."""

    base_ns: int = 25_000
    hop_ns: int = 1_000
    scaling_max_ns: int = 100_000
    """Most that flow scaling adds, at ``scaling_window_min`` packets; nothing at ``scaling_window_max``."""
    scaling_window_min: float = 0.1
    scaling_window_max: float = 100.0
    additive: float = 1.0
    beta: float = 0.8
    cut_max: float = 0.5
    window_min: float = 0.001
    window_max_bytes: int = 4_000_000

    def scaling(self) -> tuple[float, float]:
        """Factor in ps and offset in ps of factor / sqrt(window) + offset."""
        low, high = self.scaling_window_min**-0.5, self.scaling_window_max**-0.5
        factor = self.scaling_max_ns * 1_000 / (low - high)
        return factor, -factor * high


@dataclass(frozen=True, slots=True)
class PacketSettings:
    """All constants of one simulation."""

    preset: str = "simai"
    payload_bytes: int = 9_000
    overhead_bytes: int = 52
    """Headers of a data packet; no preamble and no gap, as in the public simulators."""
    ack_bytes: int = 60
    pfc_bytes: int = 43
    whole_nanoseconds: bool = True
    """Cut transmission times to 1 ns as ns-3 does (724 instead of 724.16 ns); False: to 1 ps."""
    control: Control = "dcqcn"
    window: Window = "variable"
    window_bytes: int | None = None
    """None: the greatest bandwidth-delay product of any pair, counted as SimAI does."""
    priority: int = 3
    ack_priority: int | None = None
    """None: that of the data."""
    nack_interval_ns: int = 500_000
    nack_is_cnp: bool = False
    timeout_ns: int = 4_000_000
    """Retransmission time-out; 0: none, as in ns-3."""
    loss: float = 0.0
    """Probability that any one link loses a packet."""
    stall_ns: int = 1_000_000_000
    """A run in which no byte is acknowledged for this long is stalled, and ends."""
    dcqcn: Dcqcn = field(default_factory=Dcqcn)
    ecn: Ecn = field(default_factory=Ecn)
    buffer: Buffer = field(default_factory=Buffer)
    hpcc: Hpcc = field(default_factory=Hpcc)
    swift: Swift = field(default_factory=Swift)
    leaves: Leaves = field(default_factory=Leaves)

    def __post_init__(self) -> None:
        faults = [Fault(f"packet settings: {name}", what) for name, what in _faults(self)]
        if faults:
            raise ConfigError(*faults)


SIMAI_ECN: Final = Ecn(
    table={
        25 * 10**9: (100_000, 400_000, 0.2),
        50 * 10**9: (200_000, 800_000, 0.2),
        100 * 10**9: (400_000, 1_600_000, 0.2),
        200 * 10**9: (300_000, 1_200_000, 0.8),
        400 * 10**9: (800_000, 3_200_000, 0.2),
        1600 * 10**9: (600_000, 2_400_000, 0.2),
    }
)


def preset(name: str) -> PacketSettings:
    """The published set of constants called ``name``.

    Raises
    ------
    ConfigError
        If there is no such preset.
    """
    if name == "simai":
        return PacketSettings(ecn=SIMAI_ECN)
    if name == "conweave":
        return PacketSettings(
            preset=name,
            payload_bytes=1_000,
            overhead_bytes=48,
            window="none",
            ack_priority=0,
            nack_interval_ns=4_000,
            nack_is_cnp=True,
            dcqcn=Dcqcn(
                increase_interval_ns=300_000,
                additive_bps=0,
                additive_share=10e6 / 25e9,
                hyper_bps=0,
                hyper_share=25e6 / 25e9,
            ),
            ecn=Ecn(min_bytes=100_000, max_bytes=400_000, share=0.2, proportional=False),
            buffer=Buffer(
                bytes=9 * MIB,
                headroom_delays=2,
                headroom_packets=2,
                pool_first=True,
                threshold_share=1 / 16,
            ),
        )
    if name == "dcqcn-paper":
        # The paper names no hyper increase: it is as large as the additive one here.
        return PacketSettings(
            preset=name,
            payload_bytes=1_000,
            window="none",
            dcqcn=Dcqcn(
                alpha_interval_ns=55_000,
                cut_interval_ns=0,
                increase_interval_ns=55_000,
                increase_bytes=10_000_000,
                recovery_stages=5,
                additive_bps=40e6,
                hyper_bps=40e6,
                rate_min_bps=10e6,
                clamp_target=True,
                cnp_interval_ns=50_000,
            ),
            ecn=Ecn(min_bytes=5_000, max_bytes=200_000, share=0.01, proportional=False),
        )
    if name == "nvidia":
        # The NIC's firmware says nothing of switches: ECN and buffer are SimAI's. 1024 - 1019 parts of alpha.
        return PacketSettings(
            preset=name,
            payload_bytes=4_096,
            window="none",
            dcqcn=Dcqcn(
                gain=5 / 1024,
                increase_interval_ns=300_000,
                increase_bytes=32_767,
                additive_bps=5e6,
                hyper_bps=50e6,
                rate_min_bps=1e6,
                cut_max=0.5,
                cnp_interval_ns=4_000,
            ),
            ecn=SIMAI_ECN,
        )
    if name == "hpcc-scripts":
        return PacketSettings(
            preset=name,
            payload_bytes=1_000,
            window="none",
            dcqcn=Dcqcn(
                increase_interval_ns=300_000,
                additive_bps=0,
                additive_share=5e6 / 25e9,
                hyper_bps=0,
                hyper_share=50e6 / 25e9,
                rate_min_bps=1e9,
            ),
        )
    raise ConfigError(Fault("preset", f"there is no {name!r}; there are {', '.join(PRESETS)}"))


def with_timers(settings: PacketSettings, alpha_us: int, cut_us: int, increase_us: int) -> PacketSettings:
    """The same with other DCQCN timers, in microseconds: steps of alpha, cuts, increases."""
    timers = replace(
        settings.dcqcn,
        alpha_interval_ns=alpha_us * 1_000,
        cut_interval_ns=cut_us * 1_000,
        increase_interval_ns=increase_us * 1_000,
    )
    return replace(settings, dcqcn=timers)


def describe(settings: PacketSettings) -> dict[str, object]:
    """All constants as plain values, to be written beside the results."""
    plain: dict[str, object] = asdict(settings)
    ecn = plain["ecn"]
    assert isinstance(ecn, dict)
    ecn["table"] = {str(rate): list(row) for rate, row in settings.ecn.table.items()}
    return plain


def _faults(settings: PacketSettings) -> list[tuple[str, str]]:
    """What is wrong with the constants: name and message of each."""
    bounds: list[tuple[str, float, float, float]] = [
        ("payload_bytes", settings.payload_bytes, 1, PAYLOAD_MAX),
        ("overhead_bytes", settings.overhead_bytes, 0, 1_000),
        ("ack_bytes", settings.ack_bytes, 1, 10_000),
        ("pfc_bytes", settings.pfc_bytes, 1, 10_000),
        ("priority", settings.priority, 1, 7),
        ("ack_priority", settings.ack_priority if settings.ack_priority is not None else 0, 0, 7),
        ("window_bytes", settings.window_bytes if settings.window_bytes is not None else 1, 1, 2**40),
        ("nack_interval_ns", settings.nack_interval_ns, 0, 10**12),
        ("timeout_ns", settings.timeout_ns, 0, 10**12),
        ("stall_ns", settings.stall_ns, 1, 10**14),
        ("loss", settings.loss, 0, 1),
        ("dcqcn.gain", settings.dcqcn.gain, 0, 1),
        ("dcqcn.alpha_interval_ns", settings.dcqcn.alpha_interval_ns, 1, 10**12),
        ("dcqcn.cut_interval_ns", settings.dcqcn.cut_interval_ns, 0, 10**12),
        ("dcqcn.increase_interval_ns", settings.dcqcn.increase_interval_ns, 1, 10**12),
        ("dcqcn.increase_bytes", settings.dcqcn.increase_bytes, 0, 2**31 - 1),
        ("dcqcn.recovery_stages", settings.dcqcn.recovery_stages, 0, 10**6),
        ("dcqcn.rate_min_bps", settings.dcqcn.rate_min_bps, 1e3, 1e13),
        ("dcqcn.cut_max", settings.dcqcn.cut_max, 0, 1),
        ("dcqcn.first_cnp_share", settings.dcqcn.first_cnp_share, 1e-6, 1),
        ("dcqcn.cnp_interval_ns", settings.dcqcn.cnp_interval_ns, 0, 10**12),
        ("ecn.min_bytes", settings.ecn.min_bytes, 0, settings.ecn.max_bytes - 1),
        ("ecn.share", settings.ecn.share, 0, 1),
        ("buffer.bytes", settings.buffer.bytes, 1, 2**50),
        ("buffer.threshold_share", settings.buffer.threshold_share, 1e-6, 1e6),
        ("buffer.headroom_delays", settings.buffer.headroom_delays, 0, 1e6),
        ("hpcc.utilisation_target", settings.hpcc.utilisation_target, 0.01, 10),
        ("swift.cut_max", settings.swift.cut_max, 0, 1),
        ("swift.window_min", settings.swift.window_min, 1e-6, 1),
    ]
    bounds += [(f"leaves.{name}", value, low, high) for name, value, low, high in settings.leaves.bounds()]
    return [
        (name, f"{value} is not in {low} to {high}")
        for name, value, low, high in bounds
        if not (low <= value <= high and math.isfinite(value))
    ]
