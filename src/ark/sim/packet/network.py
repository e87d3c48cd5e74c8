"""A network as plain arrays, and the empty :class:`World` that it becomes under given settings.

Knows links, switches and NICs by number only; ``ark.sim.packet.engine`` makes one from an ``ark.fabric``.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError, Fault, SimulationError
from ark.sim.packet.layout import (
    DCQCN,
    HPCC,
    LINKS_MAX,
    NICS_MAX,
    NO_CONTROL,
    PRIORITIES,
    REORDER_WORDS,
    SPRAY,
    SWIFT,
    SWITCHES_MAX,
    World,
    empty_world,
)
from ark.sim.packet.leaves import BALANCERS
from ark.sim.packet.settings import PacketSettings

PS_PER_NS: Final = 1_000
RANDOM_STREAM: Final = 0x9A
"""Tells the kernel's random numbers from others of the same seed."""
CONTROLS: Final = {"none": NO_CONTROL, "dcqcn": DCQCN, "hpcc": HPCC, "swift": SWIFT}

Table = NDArray[np.void]
"""Rows of one table of the world."""


@dataclass(frozen=True, slots=True)
class Network:
    """Directed links between switches and NICs, all ``int64[link]``; -1 where an end is of the other sort.

    Each link has a partner the other way: links come as often from x to y as from y to x.
    """

    switches: int
    nics: int
    source_switch: NDArray[np.int64]
    target_switch: NDArray[np.int64]
    source_nic: NDArray[np.int64]
    target_nic: NDArray[np.int64]
    rate_bps: NDArray[np.int64]
    delay_ns: NDArray[np.int64]

    def reverse(self) -> NDArray[np.int64]:
        """Number of each link's partner: the k-th link from x to y belongs to the k-th from y to x."""
        seen: dict[tuple[int, int], list[int]] = {}
        ends = list(zip(self._ends("source"), self._ends("target"), strict=True))
        for link, pair in enumerate(ends):
            seen.setdefault(pair, []).append(link)
        partner = np.full(len(ends), -1, np.int64)
        for (source, target), links in seen.items():
            back = seen.get((target, source), [])
            if len(back) != len(links):
                raise ConfigError(Fault("links", f"{len(links)} one way and {len(back)} the other"))
            partner[links] = back
        return partner

    def _ends(self, side: str) -> list[int]:
        """NICs count from 0, switches from -1 downwards."""
        switch = self.source_switch if side == "source" else self.target_switch
        nic = self.source_nic if side == "source" else self.target_nic
        ends: list[int] = np.where(switch >= 0, -1 - switch, nic).tolist()
        return ends


def build_world(network: Network, settings: PacketSettings, *, seed: int, balancer: str) -> World:
    """The network at rest at time 0, without flows; leaves choose paths as ``balancer`` says.

    Raises
    ------
    SimulationError
        If the network is larger than a world has room for.
    """
    for name, count, most in (
        ("links", len(network.rate_bps), LINKS_MAX),
        ("switches", network.switches, SWITCHES_MAX),
        ("NICs", network.nics, NICS_MAX),
    ):
        if count > most:
            raise SimulationError(f"the packet engine has room for {most} {name}; this network has {count}")
    world = empty_world()
    clock = world.clock
    clock.links = len(network.rate_bps)
    clock.free = -1
    clock.events_free = -1
    world.lanes["head"] = -1
    clock.reported = -1
    clock.patience = settings.stall_ns * PS_PER_NS
    clock.random = np.random.default_rng([seed, RANDOM_STREAM]).integers(1, 2**63, dtype=np.uint64)
    _set_rules(world.rules, settings, 2 * int(clock.links) + 64)
    _set_leaves(world.rules, settings, BALANCERS[balancer])
    world.routes[0] = -1
    links = world.links[: clock.links]
    _set_links(links, network, settings)
    world.queues["head"][: clock.links * PRIORITIES] = -1
    egress = np.flatnonzero(network.source_switch >= 0)
    egress = egress[np.argsort(network.source_switch[egress], kind="stable")]
    world.egress[: len(egress)] = egress
    _set_switches(world, network, settings, egress)
    _set_nics(world.nics[: network.nics], network)
    return world


def _set_links(links: Table, network: Network, settings: PacketSettings) -> None:
    tick = PS_PER_NS if settings.whole_nanoseconds else 1
    full = settings.payload_bytes + _overhead(settings)
    nic_rate = int(network.rate_bps[network.source_nic >= 0].min(initial=2**62))
    links["rate"] = network.rate_bps
    links["delay"] = network.delay_ns * PS_PER_NS
    for name, size in (("time_data", full), ("time_ack", settings.ack_bytes)):
        times = [size * 8 * 10**12 // rate for rate in network.rate_bps.tolist()]
        links[name] = [time - time % tick for time in times]
    for name in ("source_switch", "target_switch", "source_nic", "target_nic"):
        links[name] = getattr(network, name)
    links["reverse"] = network.reverse()
    links["head"] = -1
    links["up"] = 1
    links["service"] = -1
    links["loss"] = settings.loss
    for link, (rate, delay) in enumerate(
        zip(network.rate_bps.tolist(), network.delay_ns.tolist(), strict=True)
    ):
        low, high, share = settings.ecn.thresholds(rate)
        links[link].mark_min, links[link].mark_max, links[link].mark_share = low, high, share
        if settings.buffer.pfc:
            flight = settings.buffer.headroom_delays * rate * delay / 8 / 10**9
            links[link].headroom = int(flight) + settings.buffer.headroom_packets * full
        links[link].threshold_share = _threshold_share(settings, rate, nic_rate)


def _threshold_share(settings: PacketSettings, rate: int, nic_rate: int) -> float:
    """Twice the share for each doubling of the NIC's rate, rounded up, while it is below 1."""
    share = settings.buffer.threshold_share
    while rate > nic_rate and share < 1:
        share *= 2
        rate //= 2
    return share


def _set_switches(
    world: World, network: Network, settings: PacketSettings, egress: NDArray[np.int64]
) -> None:
    switches = world.switches[: network.switches]
    headroom = world.links["headroom"][: world.clock.links]
    buffer = settings.buffer
    switches["reserve"] = buffer.reserve_bytes
    switches["hysteresis"] = buffer.hysteresis_bytes
    owner = network.source_switch[egress]
    for switch in range(network.switches):
        ports = network.target_switch == switch
        taken = int(headroom[ports].sum()) + buffer.reserve_bytes * int(ports.sum())
        entry = switches[switch]
        entry.pool = max(buffer.bytes - taken, 0)
        entry.first, entry.last = np.searchsorted(owner, [switch, switch + 1])


def _set_nics(nics: Table, network: Network) -> None:
    uplinks = np.flatnonzero(network.source_nic >= 0)
    nics["link"] = -1
    nics["link"][network.source_nic[uplinks]] = uplinks
    for name in ("last", "tail", "wake"):
        nics[name] = -1


def _overhead(settings: PacketSettings) -> int:
    telemetry = settings.hpcc.telemetry_bytes if settings.control == "hpcc" else 0
    return settings.overhead_bytes + telemetry


def _set_rules(rule: np.record, settings: PacketSettings, margin: int) -> None:
    dcqcn, hpcc, swift = settings.dcqcn, settings.hpcc, settings.swift
    rule.margin = margin
    rule.tick = PS_PER_NS if settings.whole_nanoseconds else 1
    rule.payload = settings.payload_bytes
    rule.overhead = _overhead(settings)
    rule.ack_size = settings.ack_bytes
    rule.pfc_size = settings.pfc_bytes
    rule.ack_priority = -1 if settings.ack_priority is None else settings.ack_priority
    rule.pfc = settings.buffer.pfc
    rule.pool_first = settings.buffer.pool_first
    rule.control = CONTROLS[settings.control]
    rule.window_by_rate = settings.window == "variable"
    rule.nack_interval = settings.nack_interval_ns * PS_PER_NS
    rule.nack_cnp = settings.nack_is_cnp
    rule.cnp_interval = dcqcn.cnp_interval_ns * PS_PER_NS
    rule.timeout = settings.timeout_ns * PS_PER_NS
    rule.alpha_interval = dcqcn.alpha_interval_ns * PS_PER_NS
    rule.look_offset = PS_PER_NS
    rule.gain = dcqcn.gain
    rule.cut_interval = dcqcn.cut_interval_ns * PS_PER_NS
    rule.increase_interval = dcqcn.increase_interval_ns * PS_PER_NS
    rule.increase_bytes = dcqcn.increase_bytes
    rule.recovery_stages = dcqcn.recovery_stages
    rule.additive, rule.additive_share = dcqcn.additive_bps, dcqcn.additive_share
    rule.hyper, rule.hyper_share = dcqcn.hyper_bps, dcqcn.hyper_share
    rule.rate_min = dcqcn.rate_min_bps
    rule.clamp_target = dcqcn.clamp_target
    rule.first_cnp_share = dcqcn.first_cnp_share
    rule.cut_max = dcqcn.cut_max
    rule.utilisation_target = hpcc.utilisation_target
    rule.stages_max = hpcc.stages_max
    rule.hpcc_additive_share = hpcc.additive_share
    rule.swift_base = swift.base_ns * PS_PER_NS
    rule.swift_hop = swift.hop_ns * PS_PER_NS
    rule.swift_scale, rule.swift_scale_offset = swift.scaling()
    rule.swift_scale_max = swift.scaling_max_ns * PS_PER_NS
    rule.swift_additive = swift.additive
    rule.swift_beta = swift.beta
    rule.swift_cut_max = swift.cut_max
    rule.swift_window_min = swift.window_min
    rule.swift_window_max = swift.window_max_bytes / settings.payload_bytes


def _set_leaves(rule: np.record, settings: PacketSettings, balancer: int) -> None:
    leaves = settings.leaves
    rule.balancer = balancer
    rule.flowlet_gap = leaves.flowlet_gap_ns * PS_PER_NS
    rule.conga_interval = leaves.conga_interval_ns * PS_PER_NS
    rule.conga_decay = leaves.conga_decay
    rule.conga_levels = leaves.conga_levels
    rule.conga_aging = leaves.conga_aging_ns * PS_PER_NS
    rule.conga_samples = leaves.conga_samples
    rule.drill_samples = leaves.drill_samples
    rule.reply_extra = leaves.conweave_reply_extra_ns * PS_PER_NS
    rule.path_pause = leaves.conweave_path_pause_ns * PS_PER_NS
    rule.flush_extra = leaves.conweave_flush_extra_ns * PS_PER_NS
    rule.tail_wait = leaves.conweave_tail_wait_ns * PS_PER_NS
    rule.epoch_expiry = leaves.conweave_expiry_ns * PS_PER_NS
    rule.reorder_span = 64 * REORDER_WORDS if balancer == SPRAY else 0
