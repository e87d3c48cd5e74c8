"""Steer queue pairs of pyverbs (rdma-core's own Python module; Debian: python3-pyverbs).

Works on the caller's objects and imports pyverbs only when called.
"""

from typing import Any, Final

from ark.integrations.roce.drain import DRAIN_TIMEOUT_S, Seen, State, drain_and_move
from ark.integrations.roce.drivers import Driver, Move
from ark.integrations.roce.label import label_for
from ark.integrations.roce.outcome import NotSteered, Outcome, Steered
from ark.integrations.roce.vendor import judged

STATE: Final = 1 << 0
AV: Final = 1 << 7
"""Of ``enum ibv_qp_attr_mask``."""


def label_at_rtr(attr: Any, source_port: int | None, *, driver: Driver) -> Outcome:
    """Put the label for a port into a ``QPAttr`` whose ``ah_attr`` is set, before ``QP.to_rtr(attr)``.

    Raises
    ------
    LocalProtocolError
        If RoCEv2 does not use the port.
    """
    chosen = label_for(driver, source_port)
    address = attr.ah_attr  # a copy
    if not address.is_global:
        return NotSteered("the address vector has no global route, which RoCE needs")
    address.flow_label = chosen.flow_label
    attr.ah_attr = address
    return chosen.outcome


def move(qp: Any, source_port: int, *, driver: Driver, timeout_s: float = DRAIN_TIMEOUT_S) -> Outcome:
    """Move a ``QP`` that is in RTS to another port, by whatever way its driver has.

    Raises
    ------
    LocalProtocolError
        If RoCEv2 does not use the port.
    """
    chosen = label_for(driver, source_port)
    if driver.move is Move.DRAIN:
        return drain_and_move(_QueuePair(qp), chosen, timeout_s=timeout_s)
    if driver.name == "mlx5":
        return _mlx5(qp, source_port)
    if driver.move is Move.CALL:
        return NotSteered(f"pyverbs does not give the address that {driver.name} needs")
    return NotSteered(f"{driver.name}: {driver.why_not_moved}")


class _QueuePair:
    """A ``QP`` as ``drain_and_move`` wants it."""

    def __init__(self, qp: Any) -> None:
        from pyverbs.qp import QPAttr  # noqa: PLC0415 - nothing else needs pyverbs

        self._qp = qp
        self._attr = QPAttr

    def look(self) -> Seen:
        attr = self._query(STATE)
        return Seen(State(attr.qp_state), bool(attr.sq_draining))

    def drain(self) -> None:
        self._modify(self._attr(qp_state=State.SQD), STATE)

    def relabel(self, flow_label: int) -> None:
        attr = self._query(AV)
        address = attr.ah_attr
        address.flow_label = flow_label
        fresh = self._attr()
        fresh.ah_attr = address
        self._modify(fresh, AV)

    def resume(self) -> None:
        self._modify(self._attr(qp_state=State.RTS), STATE)

    def _query(self, mask: int) -> Any:
        from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415 - nothing else needs pyverbs

        try:
            return self._qp.query(mask)[0]
        except PyverbsError as error:
            raise OSError(str(error)) from None

    def _modify(self, attr: Any, mask: int) -> None:
        from pyverbs.pyverbs_error import PyverbsError  # noqa: PLC0415 - nothing else needs pyverbs

        try:
            self._qp.modify(attr, mask)
        except PyverbsError as error:
            raise OSError(str(error)) from None


def _mlx5(qp: Any, source_port: int) -> Outcome:
    try:
        from pyverbs.providers.mlx5.mlx5dv import Mlx5QP  # noqa: PLC0415 - and this has libmlx5
        from pyverbs.pyverbs_error import PyverbsRDMAError  # noqa: PLC0415 - nothing else needs pyverbs
    except ImportError as error:
        return NotSteered(f"pyverbs has no mlx5 part that can be loaded: {error}")
    try:
        Mlx5QP.modify_udp_sport(qp, source_port)
    except PyverbsRDMAError as error:
        return judged("mlx5dv_modify_qp_udp_sport", source_port, int(error.error_code))
    return Steered(source_port, "mlx5dv_modify_qp_udp_sport")
