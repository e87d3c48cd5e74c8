"""How RoCEv2 names the UDP source port of a queue pair.

Source of the formulas: Linux, include/rdma/ib_verbs.h (``rdma_flow_label_to_udp_sport``,
``rdma_calc_flow_label``, ``rdma_get_udp_sport``); user space has the first as
``ibv_flow_label_to_udp_sport``. An application that cannot set a source port sets the flow label of its
address handle instead.
"""

from typing import Final, overload

from ark.fabric.hashing.header import Lanes

DPORT: Final = 4791
"""The UDP destination port of RoCEv2."""

SPORTS: Final = range(0xC000, 0x1_0000)
"""The UDP source ports that RoCEv2 uses."""

FLOW_LABEL_MAX: Final = 0xF_FFFF


def sport_of_flow_label(flow_label: int) -> int:
    """The UDP source port that a driver derives from a flow label other than 0, which is 1 to 0xFFFFF.

    Raises
    ------
    ValueError
        If the flow label is out of its range; 0 means that the driver decides (``sport_of_queue_pairs``).
    """
    if not 1 <= flow_label <= FLOW_LABEL_MAX:
        raise ValueError(f"a flow label that sets the port is 1 to {FLOW_LABEL_MAX:#x}, not {flow_label:#x}")
    return _folded(flow_label)


@overload
def flow_label_of_sport(sport: int) -> int: ...
@overload
def flow_label_of_sport(sport: Lanes) -> Lanes: ...
def flow_label_of_sport(sport: Lanes) -> Lanes:
    """The least flow label that makes a driver use this UDP source port; or those of an array of ports.

    Raises
    ------
    ValueError
        If RoCEv2 does not use the port; arrays are not checked.
    """
    if isinstance(sport, int) and sport not in SPORTS:
        raise ValueError(f"RoCE source ports are {SPORTS.start} to {SPORTS.stop - 1}, not {sport}")
    folded = sport & 0x3FFF
    # Label 0 would fold to 0xC000 too, but means "driver decides"; the two bits of 0x4001 cancel.
    return folded | (folded == 0) * 0x4001


def sport_of_queue_pairs(local_qpn: int, remote_qpn: int) -> int:
    """The UDP source port where no flow label is set: from the 24-bit numbers of the two queue pairs."""
    product = local_qpn * remote_qpn
    product ^= product >> 20
    product ^= product >> 40
    return _folded(product & FLOW_LABEL_MAX)


def _folded(flow_label: int) -> int:
    return (flow_label & 0x3FFF ^ (flow_label & 0xF_C000) >> 14) | 0xC000
