"""Where everything stands: the records of the packet kernel, their fields and units.

The kernel is a set of compiled functions over one record, the :data:`WORLD`, whose fields are tables of
records. An index into a table is the name of a thing: link 7, flow 12, packet 3; -1 is "none". Times are
whole picoseconds since the start, sizes whole bytes, rates bits per second. No field has the name of an
attribute of NumPy's records (``size``, ``trace``), which is what the interpreter would read.

Functions pass the world as a single pointer. Passed as separate arrays it would be a hundred words with
reference counts, copied at each of the dozen calls that an event takes; that costs more than the event.

The tables have room for the largest simulation, but the operating system provides memory only for rows that
are used. Packets are records of one pool, linked into lists by their field ``next``, and used again when they
have arrived. So the memory follows what is under way at once, never the bytes sent.
"""

from typing import Final

import numpy as np

PRIORITIES: Final = 8
"""Queues of an egress port (IEEE 802.1Q). Queue 0 is strict and holds PFC frames, the others take turns."""

INT_HOPS: Final = 8
"""Most switches whose telemetry a packet carries for HPCC; paths with more are refused."""

LINKS_MAX: Final = 2**17
SWITCHES_MAX: Final = 2**14
NICS_MAX: Final = 2**16
FLOWS_MAX: Final = 2**20
PACKETS_MAX: Final = 2**20
"""Most packets under way at once."""
EVENTS_MAX: Final = 2**21
LANES: Final = 31
"""Lanes of events (``events``): a prime, so that leads spread over them."""
ROUTES_MAX: Final = 2**23
"""Entries of the table of routes."""

PATHS_MAX: Final = 2**22
"""Paths between leaves, each counted for both leaves."""
REORDER_WORDS: Final = 32
"""Words of 64 bits in which a receiver notes packets that came before their turn: a ring."""

NEVER: Final = 2**62
"""A time that does not come."""

LINE: Final = 64
"""Bytes of a cache line. Tables start at one, and records that each event reads fill whole ones."""


def _in_lines(fields: list[tuple[str, str]]) -> np.dtype[np.void]:
    """A record of ``fields``, filled up to whole cache lines.

    By a field: for padding without a name NumPy describes the world by a text of ten million characters.
    """
    rest = -np.dtype(fields, align=True).itemsize % LINE
    return np.dtype([*fields, ("filler", "u1", (rest,))] if rest else fields, align=True)


# What a packet is.
DATA: Final = 0
ACK: Final = 1
NACK: Final = 2
REPLY: Final = 3
"""ConWeave: the last leaf answers the first one's question, or its tail."""
NOTIFY: Final = 4
"""ConWeave: a packet came marked over a path."""
PAUSE: Final = 5
"""From here on frames that go over one link only."""
RESUME: Final = 6

# What an event is. One link, NIC or flow has at most one live event of a kind.
ARRIVAL: Final = 0
"""The first packet on its way over a link reaches the far end."""
SERVICE: Final = 1
"""A link has to take its next packet now, because a switch waits for the room."""
WAKE: Final = 2
"""A NIC may send: its link is free, or a flow's pacing time has come."""
CUT: Final = 3
"""DCQCN looks whether CNPs came, and lowers the rate."""
INCREASE: Final = 4
"""DCQCN's timer raises the rate."""
TIMEOUT: Final = 5
"""A flow has waited too long for an acknowledgement."""
FLUSH: Final = 6
"""ConWeave: the last leaf has held back packets of a flow long enough."""

# Why the kernel returned.
REACHED: Final = 0
"""Nothing is left to do before the time limit."""
COMPLETED: Final = 1
"""A flow is complete, or has reached the end of its segment: ``Clock.reported`` is its number."""
FULL: Final = 2
"""More packets or events than there is room for."""
STALLED: Final = 3
"""No flow has made progress for ``Clock.patience``."""

# How leaves spread packets over paths.
NO_BALANCER: Final = 0
"""Not at all: the hash of the flow decides, once."""
LETFLOW: Final = 1
CONGA: Final = 2
DRILL: Final = 3
CONWEAVE: Final = 4
SPRAY: Final = 5

# What governs the rate of a flow.
NO_CONTROL: Final = 0
DCQCN: Final = 1
HPCC: Final = 2
SWIFT: Final = 3

CLOCK: Final = _in_lines(
    [
        ("now", "i8"),
        ("links", "i8"),  # links that there are
        ("order", "i8"),  # number of the next event: breaks ties, first come first served
        ("pending", "i8"),  # events to come
        ("heap", "i8"),  # ... those in the heap
        ("events_free", "i8"),  # records of waiting events: first that was used and is free again
        ("events_made", "i8"),  # ... that were ever used
        ("vacancy", "i8"),  # 1 while the event at the top of the heap is the one being handled
        ("free", "i8"),  # first packet that was used and is free again
        ("made", "i8"),  # packets that were ever used
        ("under_way", "i8"),  # packets in use
        ("random", "u8"),  # state of the generator (xorshift)
        ("live", "i8"),  # flows that have started and are not complete
        ("progress", "i8"),  # when any flow last had new bytes acknowledged
        ("patience", "i8"),  # time without progress that counts as a stall
        ("reported", "i8"),  # flow to report to the caller, or -1
        ("events", "i8"),  # events handled
        ("history", "i8"),  # hash over all events handled
        ("marks", "i8"),  # packets marked by ECN
        ("drops", "i8"),  # packets dropped, for any reason
    ]
)
"""The one record of what belongs to no link, flow or packet."""

PACKET: Final = _in_lines(
    [
        ("next", "i4"),  # next packet of the same list
        ("flow", "i4"),
        ("hop", "i4"),  # position in the table of routes: the link that it is on, or is to take next
        ("length", "i4"),  # bytes on the wire
        ("payload", "i4"),
        ("account", "i4"),  # link by which it came into the switch that holds it: that port's buffer account
        ("kind", "u1"),
        ("priority", "u1"),
        ("marked", "u1"),  # ECN: congestion experienced; in an ACK: the CNP flag
        ("stops", "u1"),  # INT records that it carries
        ("path", "i4"),  # which of its flow's paths it takes, where leaves choose
        ("sequence", "i8"),  # data: its first byte; ACK and NACK: next byte that the receiver expects
        ("arrival", "i8"),  # when it reaches the end of the link that it is on
        ("sent", "i8"),  # when its data left the sender, for Swift
    ],
)

LINK: Final = _in_lines(
    [
        # What nearly every event reads stands together in front.
        ("free", "i8"),  # when the last packet that began is out: the next may begin
        ("delay", "i8"),
        ("time_data", "i8"),  # transmission of a full data packet
        ("time_ack", "i8"),  # transmission of an ACK
        ("head", "i4"),  # packets that have begun and not arrived: first and last
        ("tail", "i4"),
        ("waiting", "u1"),  # bit q: queue q holds packets
        ("paused", "u1"),  # bit q: the far end has paused queue q
        ("turn", "u1"),  # queue served last, for the round robin
        ("up", "u1"),
        ("source_switch", "i4"),  # where it comes from and leads to: a switch, or a NIC
        ("target_switch", "i4"),
        ("pause_due", "u1"),  # bit q: a PAUSE, or RESUME, of priority q is to be sent
        ("resume_due", "u1"),
        ("resume_first", "u1"),  # bit q: both are due, the RESUME before the PAUSE
        ("queued", "i8"),  # bytes in all queues
        ("mark_min", "i8"),  # ECN: bytes left in the queue below which no packet is marked
        ("sent_bytes", "i8"),
        ("loss", "f8"),  # probability that a packet is lost
        ("threshold_share", "f8"),  # PFC at its target: share of the free pool for a priority
        ("headroom", "i8"),  # ... bytes that may come after a pause
        ("service", "i8"),  # time of its live SERVICE event, or -1
        ("mark_max", "i8"),  # ECN: bytes above which each packet is marked
        ("mark_share", "f8"),  # probability of a mark at mark_max
        ("rate", "i8"),
        ("source_nic", "i4"),
        ("target_nic", "i4"),
        ("reverse", "i4"),  # the link the other way
        ("marks", "i8"),
        ("drops", "i8"),
        ("pauses", "i8"),  # PFC pauses received
        ("paused_since", "i8"),
        ("paused_time", "i8"),
    ],
)

QUEUE: Final = np.dtype([("head", "i4"), ("tail", "i4"), ("bytes", "i8")])
"""One egress queue; that of link l and priority q is number l * PRIORITIES + q."""

ACCOUNT: Final = np.dtype([("bytes", "i8"), ("headroom", "i8"), ("paused", "i8")])
"""What one ingress port holds of a switch's buffer in one priority, numbered as the queues are."""

SWITCH: Final = np.dtype(
    [
        ("pool", "i8"),  # shared buffer: all of it less headrooms and reserves
        ("reserve", "i8"),  # bytes that each account has to itself
        ("hysteresis", "i8"),  # bytes below the threshold at which a pause ends
        ("shared", "i8"),  # bytes of the pool in use
        ("pausing", "i8"),  # accounts whose sender is paused
        ("first", "i8"),  # its egress links: egress[first:last]
        ("last", "i8"),
    ]
)

NIC: Final = np.dtype(
    [
        ("link", "i8"),  # its egress link
        ("last", "i8"),  # flow served last, for the round robin; -1: none
        ("tail", "i8"),  # flow added last; the flows are a ring by Flow.ring
        ("wake", "i8"),  # time of its live WAKE event, or -1
    ]
)

FLOW: Final = _in_lines(
    [
        # What its NIC looks at when it chooses the next flow.
        ("nic", "i4"),
        ("ring", "i4"),  # next flow of the same NIC
        ("route", "i4"),  # position of its first data link in the table of routes
        ("back", "i4"),  # the same for its ACKs
        ("priority", "u1"),
        ("cut_armed", "u1"),
        ("timeout_armed", "u1"),
        ("active", "u1"),
        ("next", "i8"),  # next byte to send
        ("acked", "i8"),  # first byte that is not acknowledged
        ("limit", "i8"),  # end of the segment: bytes from here on are not sent
        ("allowed", "i8"),  # window at the present rate
        ("ready", "i8"),  # pacing: earliest time of the next packet
        # What else each packet changes.
        ("gap", "i8"),  # pacing: time between full packets at the present rate
        ("highest", "i8"),  # first byte never sent
        ("deadline", "i8"),  # retransmission time-out
        ("sent_packets", "i8"),
        ("length", "i8"),
        ("expected", "i8"),  # receiver: next byte
        ("cnp_until", "i8"),  # ... time before which no further CNP is sent
        ("marks", "i8"),  # ... marked packets that came
        ("nack_sequence", "i8"),  # ... what the last NACK asked for
        ("nack_until", "i8"),  # ... time before which the same NACK is not repeated
        ("start", "i8"),
        ("finish", "i8"),  # or -1
        ("window", "i8"),  # bytes in flight at line rate; 0: no limit
        # Rates.
        ("line", "f8"),
        ("rate", "f8"),
        ("target", "f8"),
        # DCQCN.
        ("alpha", "f8"),
        ("alpha_due", "i8"),  # next step of alpha
        ("alpha_cnp", "u1"),  # a CNP has come since the last step of alpha
        ("cut_cnp", "u1"),  # a CNP has come since the last look
        ("congested", "u1"),  # any CNP has come
        ("increase_armed", "u1"),
        ("stage", "i4"),  # increases by the timer since the last cut
        ("byte_stage", "i4"),  # increases by the byte counter since the last cut
        ("byte_count", "i4"),
        ("cut_origin", "i8"),  # the looks are at cut_origin + k * interval
        ("increase_due", "i8"),
        # HPCC and Swift.
        (
            "reference",
            "f8",
        ),  # HPCC: window at the last update (Wc) as a rate; Swift: congestion window in packets
        ("utilisation", "f8"),
        ("update_after", "i8"),  # HPCC: byte whose ACK ends the round
        ("rounds", "i4"),  # HPCC: increases in a row; Swift: time-outs in a row
        ("sampled", "u1"),
        ("decreased", "i8"),  # Swift: when the window was last cut
        ("base_rtt", "i8"),
        # What happened.
        ("retransmits", "i8"),
        ("nacks", "i8"),
        ("timeouts", "i8"),
    ],
)

STEERING: Final = np.dtype(
    [
        # What the first leaf knows of a flow.
        ("first", "i4"),  # its paths: choices[first : first + count]
        ("count", "i4"),
        ("path", "i4"),  # the one that it takes now, or -1
        ("pair", "i4"),  # state of these paths: paths[pair : pair + count] ...
        ("back", "i4"),  # ... and of the paths from the last leaf to the first
        ("memory", "i4"),  # DRILL: remembered[memory] is the best path found so far
        ("seen", "i8"),  # when its last packet came
        # ConWeave, first leaf.
        ("base_rtt", "i8"),  # propagation from leaf to leaf and back
        ("deadline", "i8"),  # the reply is late from here on; NEVER: none is awaited
        ("tail_sent", "i8"),  # when the tail of the old path left; 0: no tail in this epoch
        ("epoch", "i4"),
        ("phase", "u1"),  # 1: behind the tail, on the new path
        ("stable", "u1"),  # the reply came in time, or the tail is known to have come
        # ConWeave, last leaf.
        ("came_phase", "u1"),  # 1: the tail of the epoch has come
        ("timed", "u1"),  # times of a packet of phase 0 of this epoch are known
        ("holding", "u1"),
        ("came_epoch", "i4"),
        ("old_sent", "i8"),  # a packet of phase 0: when it left the first leaf ...
        ("old_came", "i8"),  # ... and when it came
        ("tail_known", "i8"),  # when the tail left, as later packets tell
        ("head", "i4"),  # packets held back: first and last
        ("end", "i4"),
        ("flush", "i8"),  # when they are let go
        ("armed", "i8"),  # time of the live FLUSH event, or -1
    ],
    align=True,
)
"""What leaves know of a flow whose packets they spread over paths."""

PATH: Final = np.dtype(
    [
        ("busy_until", "i8"),  # ConWeave, first leaf: not to be chosen before
        ("told_at", "i8"),  # CONGA, first leaf: when it was told ...
        ("told", "i8"),  # ... how congested the path is
        ("met_at", "i8"),  # CONGA, last leaf: when a packet last came over the path ...
        ("met", "i8"),  # ... and the congestion that it met
    ]
)
"""What two leaves know of one path between them; times are -1 before anything is known."""

METER: Final = np.dtype([("bytes", "f8"), ("stepped", "i8")])
"""CONGA's discounting estimator of a link: bytes sent of late, and the number of the last step."""

LABEL: Final = np.dtype(
    [
        ("sent", "i8"),  # ConWeave: when it left the first leaf
        ("tail", "i8"),  # ... and when the tail of its epoch did
        ("epoch", "i4"),
        ("phase", "u1"),
        ("flag", "u1"),  # ConWeave: PLAIN, ASKS or TAIL
        ("congestion", "u1"),  # CONGA: most that it has met
        ("told", "u1"),  # CONGA: the congestion of path about_path the other way
        ("about_path", "i4"),  # ... or -1
        ("filler", "i4"),
    ]
)
"""What the leaf's header adds to a packet."""

PLAIN: Final = 0
ASKS: Final = 1
"""ConWeave: first packet of an epoch, whose arrival is to be reported."""
TAIL: Final = 2
"""ConWeave: last packet over the old path."""

LANE: Final = np.dtype(
    [
        ("lead", "i8"),  # how far ahead its events were scheduled
        ("busy", "i4"),  # 1: the first of them is in the heap
        ("head", "i4"),  # those that wait: first and last
        ("tail", "i4"),
        ("filler", "i4"),
    ]
)
"""Events that come in the order in which they were scheduled."""

EVENT: Final = np.dtype(
    [
        ("when", "i8"),
        ("what", "i8"),  # order, lane, index and kind in one number (``events``)
        ("next", "i4"),  # next event of the lane
        ("filler", "i4", (3,)),
    ]
)
"""An event that waits in a lane."""

INT: Final = np.dtype([("time", "i8"), ("sent", "i8"), ("queued", "i8"), ("link", "i8")])
"""What a switch wrote into a packet, and what a flow saw last of each hop (HPCC)."""

RULES: Final = _in_lines(
    [
        ("margin", "i8"),  # most packets and events that the handling of one event may add
        ("tick", "i8"),  # durations are cut to multiples of this: 1 ps, or 1000 as ns-3 does
        ("payload", "i8"),  # bytes of a full packet
        ("overhead", "i8"),  # bytes of headers around the payload
        ("ack_size", "i8"),
        ("pfc_size", "i8"),
        ("ack_priority", "i8"),  # -1: that of the data
        ("pfc", "i8"),  # 1: switches pause their senders
        ("pool_first", "i8"),  # 1: headroom is for a full pool only, not for a full account
        ("control", "i8"),
        ("window_by_rate", "i8"),  # 1: the window shrinks with the rate
        ("nack_interval", "i8"),
        ("nack_cnp", "i8"),  # 1: a NACK counts as CNP
        ("cnp_interval", "i8"),
        ("timeout", "i8"),  # 0: none
        # DCQCN.
        ("alpha_interval", "i8"),
        ("look_offset", "i8"),  # the looks come this much after the steps of alpha
        ("gain", "f8"),
        ("cut_interval", "i8"),  # 0: at each CNP
        ("increase_interval", "i8"),
        ("increase_bytes", "i8"),  # 0: no byte counter
        ("recovery_stages", "i8"),
        ("additive", "f8"),  # bit/s that an increase adds to the target ...
        ("additive_share", "f8"),  # ... and share of the line rate
        ("hyper", "f8"),
        ("hyper_share", "f8"),
        ("rate_min", "f8"),
        ("clamp_target", "i8"),
        ("first_cnp_share", "f8"),
        ("cut_max", "f8"),  # most that one cut takes, as a share
        # HPCC.
        ("utilisation_target", "f8"),
        ("stages_max", "i8"),
        ("hpcc_additive_share", "f8"),
        # Swift.
        ("swift_base", "i8"),
        ("swift_hop", "i8"),
        ("swift_scale", "f8"),
        ("swift_scale_offset", "f8"),
        ("swift_scale_max", "i8"),
        ("swift_additive", "f8"),
        ("swift_beta", "f8"),
        ("swift_cut_max", "f8"),
        ("swift_window_min", "f8"),
        ("swift_window_max", "f8"),
        # Leaves that choose paths.
        ("balancer", "i8"),
        ("flowlet_gap", "i8"),
        ("conga_interval", "i8"),
        ("conga_decay", "f8"),
        ("conga_levels", "i8"),
        ("conga_aging", "i8"),
        ("conga_samples", "i8"),
        ("drill_samples", "i8"),
        ("reply_extra", "i8"),
        ("path_pause", "i8"),
        ("flush_extra", "i8"),
        ("tail_wait", "i8"),
        ("epoch_expiry", "i8"),
        ("reorder_span", "i8"),  # packets beyond the first gap that a receiver keeps; 0: go-back-N
    ]
)
"""The one record of constants; ``ark.sim.packet.settings`` says where their values come from."""

WORLD: Final = np.dtype(
    [
        ("clock", CLOCK),
        ("rules", RULES),
        ("links", LINK, (LINKS_MAX,)),
        ("queues", QUEUE, (LINKS_MAX * PRIORITIES,)),
        ("accounts", ACCOUNT, (LINKS_MAX * PRIORITIES,)),
        ("switches", SWITCH, (SWITCHES_MAX,)),
        ("nics", NIC, (NICS_MAX,)),
        ("flows", FLOW, (FLOWS_MAX,)),
        ("packets", PACKET, (PACKETS_MAX,)),
        ("stops", INT, (PACKETS_MAX * INT_HOPS,)),  # what packet p carries: stops[p * INT_HOPS:]
        ("seen", INT, (FLOWS_MAX * INT_HOPS,)),  # what flow f saw last
        ("routes", "i4", (ROUTES_MAX,)),  # link numbers of all routes, one after the other, each ended by -1
        ("egress", "i4", (LINKS_MAX,)),  # egress links of all switches, switch by switch
        ("steerings", STEERING, (FLOWS_MAX,)),
        ("choices", "i4", (ROUTES_MAX,)),  # positions in the table of routes, one for each path of a flow
        ("paths", PATH, (PATHS_MAX,)),
        ("meters", METER, (LINKS_MAX,)),
        ("labels", LABEL, (PACKETS_MAX,)),
        ("remembered", "i4", (FLOWS_MAX,)),
        ("kept", "u8", (FLOWS_MAX * REORDER_WORDS,)),  # bit per packet that came before its turn
        ("lanes", LANE, (LANES + 1,)),  # number 0 is none
        ("events", EVENT, (EVENTS_MAX,)),  # those that wait in lanes
        ("when", "i8", (EVENTS_MAX,)),  # event heap: times
        ("what", "i8", (EVENTS_MAX,)),  # event heap: order, lane, index and kind in one number
    ]
)
"""Everything that a simulation knows."""

World = np.record
"""One record of :data:`WORLD`: ``world.links[3].rate``."""


def empty_world() -> World:
    """A world of zeros."""
    room = np.zeros(WORLD.itemsize + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    world: World = room[start : start + WORLD.itemsize].view(WORLD).view(np.recarray)[0]
    return world
