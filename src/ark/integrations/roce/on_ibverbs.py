"""Steer queue pairs of the PyPI package ``ibverbs``. Works on the caller's objects and imports nothing of it.

That package's own ``QP.to_rtr`` and ``connect_rc`` take no flow label, so ``to_rtr`` here stands in for them.
Its live queue pairs can't be moved: it tells neither whether one is drained nor where its ``ibv_qp`` lies.
Use one queue pair a path (``PathQueuePairs``).
"""

from typing import Any, Final

from ark.integrations.roce.drain import State
from ark.integrations.roce.drivers import Driver
from ark.integrations.roce.label import label_for
from ark.integrations.roce.outcome import Outcome

_STATE: Final = 1 << 0
_AV: Final = 1 << 7
_PATH_MTU: Final = 1 << 8
_RQ_PSN: Final = 1 << 12
_MIN_RNR_TIMER: Final = 1 << 15
_MAX_DEST_RD_ATOMIC: Final = 1 << 17
_DEST_QPN: Final = 1 << 20
"""Of ``enum ibv_qp_attr_mask``."""

_RTR: Final = _STATE | _AV | _PATH_MTU | _DEST_QPN | _RQ_PSN | _MAX_DEST_RD_ATOMIC | _MIN_RNR_TIMER


def to_rtr(
    qp: Any,
    remote: Any,
    address: Any,
    source_port: int | None,
    *,
    driver: Driver,
    min_rnr_timer: int = 12,
    max_dest_rd_atomic: int = 1,
) -> Outcome:
    """Bring an RC ``QP`` from INIT to RTR with the label for a port; a stand-in for ``QP.to_rtr``.

    Parameters
    ----------
    remote
        The peer's ``QPInfo``.
    address
        An ``AHAttr`` with the peer's GID and our ``sgid_index``; it gets the label.
    source_port
        None for no preference.

    Raises
    ------
    LocalProtocolError
        If RoCEv2 does not use the port.
    OSError
        If the driver refuses the transition.
    """
    chosen = label_for(driver, source_port)
    address.flow_label = chosen.flow_label
    qp.modify(
        _RTR,
        ah_attr=address,
        qp_state=int(State.RTR),
        path_mtu=remote.mtu,
        dest_qp_num=remote.qp_num,
        rq_psn=remote.psn,
        max_dest_rd_atomic=max_dest_rd_atomic,
        min_rnr_timer=min_rnr_timer,
    )
    return chosen.outcome
