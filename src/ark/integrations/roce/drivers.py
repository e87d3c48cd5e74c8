"""What each RDMA driver of Linux does with a flow label, and how a live queue pair's port can be changed.

Data with its sources; nothing here asks a device (``ark.integrations.roce.device`` does).
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Label(StrEnum):
    """What becomes of ``ah_attr.grh.flow_label`` when an RC queue pair goes to RTR."""

    SETS_PORT = "sets the port"
    UNPROVEN = "unproven"
    """It is handed to firmware, and no public source says what that does with it."""
    IGNORED = "ignored"


class Move(StrEnum):
    """How the port of a queue pair that is ready to send can be changed."""

    DRAIN = "drain and move"
    """RTS, SQD, a new address vector, RTS."""
    CALL = "vendor call"
    NONE = "not at all"


@dataclass(frozen=True, slots=True)
class VendorCall:
    """A C function ``int f(struct ibv_qp *, uint16_t port)`` that returns 0 or an errno, negated or not.

    Attributes
    ----------
    symbol
        Its name.
    libraries
        Names of the library that may hold it; the first that can be loaded counts.
    since
        The first release that has it.
    """

    symbol: str
    libraries: tuple[str, ...]
    since: str


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver.

    Attributes
    ----------
    name
        As rdma-core calls it.
    number
        ``enum rdma_driver_id`` of ``rdma/ib_user_ioctl_verbs.h``.
    why_not_moved
        For ``Move.NONE``: the reason, for people.
    source
        Where its behaviour was read.
    """

    name: str
    number: int
    label: Label
    move: Move
    source: str
    call: VendorCall | None = None
    why_not_moved: str = ""


NOT_PROVEN: Final = (
    "no call for it is known, and whether the NIC takes a new address vector while drained was not tested"
)

_KERNEL: Final = "Linux 6.12 and 6.18, drivers/infiniband/"

DRIVERS: Final = (
    Driver(
        "mlx5",
        1,
        Label.SETS_PORT,
        Move.CALL,
        _KERNEL + "hw/mlx5/qp.c (mlx5_set_path_udp_sport); its table of transitions has no SQD to SQD; "
        "rdma-core, providers/mlx5/verbs.c",
        VendorCall("mlx5dv_modify_qp_udp_sport", ("libmlx5.so.1",), "rdma-core 33 (MLX5_1.17)"),
    ),
    Driver(
        "bnxt_re",
        6,
        Label.UNPROVEN,
        Move.CALL,
        _KERNEL + "hw/bnxt_re (CMDQ_MODIFY_QP_MODIFY_MASK_FLOW_LABEL); Broadcom's own libbnxt_re",
        VendorCall(
            "bnxt_re_dv_modify_qp_udp_sport",
            ("libbnxt_re.so", "libbnxt_re-rdmav59.so", "libbnxt_re-rdmav34.so"),
            "Broadcom's own library only; rdma-core has none",
        ),
    ),
    Driver("irdma", 9, Label.SETS_PORT, Move.NONE, _KERNEL + "hw/irdma/verbs.c", why_not_moved=NOT_PROVEN),
    Driver("hns", 12, Label.SETS_PORT, Move.NONE, _KERNEL + "hw/hns", why_not_moved=NOT_PROVEN),
    Driver("rxe", 14, Label.SETS_PORT, Move.DRAIN, _KERNEL + "sw/rxe/rxe_verbs.c; emulated on 6.1"),
    Driver(
        "efa",
        17,
        Label.IGNORED,
        Move.NONE,
        _KERNEL + "hw/efa: the address handle takes only the GID",
        why_not_moved="its transport (SRD) spreads the packets of a flow over all paths by itself",
    ),
    Driver(
        "siw",
        18,
        Label.IGNORED,
        Move.NONE,
        _KERNEL + "sw/siw: an ordinary TCP socket of the kernel",
        why_not_moved="its queue pairs are TCP connections; choose the port when they connect",
    ),
    Driver("erdma", 19, Label.SETS_PORT, Move.NONE, _KERNEL + "hw/erdma", why_not_moved=NOT_PROVEN),
    Driver("mana", 20, Label.SETS_PORT, Move.NONE, _KERNEL + "hw/mana", why_not_moved=NOT_PROVEN),
    Driver("ionic", 21, Label.SETS_PORT, Move.NONE, _KERNEL + "hw/ionic (6.18)", why_not_moved=NOT_PROVEN),
)
"""The drivers whose source was read. Other RDMA hardware gets labels, but no promise."""

BY_NAME: Final = MappingProxyType({driver.name: driver for driver in DRIVERS})
BY_NUMBER: Final = MappingProxyType({driver.number: driver for driver in DRIVERS})


def unknown(name: str) -> Driver:
    """What is said of a driver that is not in the table: a label does no harm, and nothing is promised."""
    return Driver(
        name,
        0,
        Label.UNPROVEN,
        Move.NONE,
        "not read",
        why_not_moved=f'ARK does not know the driver "{name}"',
    )
