"""RC queue pairs between the two hosts by pyverbs, as an application of it would make them."""

import time
from ipaddress import IPv6Address
from typing import Final

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR
from tests.rdma.guest.network import Host

from ark.integrations.roce import Driver, Outcome, driver_of
from ark.integrations.roce.on_pyverbs import label_at_rtr

RC: Final = 2
MTU_1024: Final = 3
ACCESS: Final = 1 | 2 | 4  # local write, remote write, remote read
WRITE: Final = 0
READ: Final = 4
SIGNALED: Final = 2
ACK_TIMEOUT: Final = 20
"""About 4 s: emulated machines are slow, and shorter time-outs only retransmit."""

POLL_S: Final = 0.002
SETTLE_S: Final = 0.3
"""Time for the last packets to be counted."""


class End:
    """A host's device, opened, with one buffer for all of its queue pairs."""

    def __init__(self, host: Host, buffer_bytes: int) -> None:
        self.host = host
        self.driver: Driver = driver_of(host.device)
        self.context = Context(name=host.device)
        self.domain = PD(self.context)
        self.queue = CQ(self.context, 256)
        self.buffer = MR(self.domain, buffer_bytes, ACCESS)
        self.gid_index = self._gid_index()

    def fresh(self) -> QP:
        """A queue pair in RESET."""
        init = QPInitAttr(qp_type=RC, scq=self.queue, rcq=self.queue, cap=QPCap(max_send_wr=64), sq_sig_all=0)
        return QP(self.domain, init)

    def post(self, qp: QP, opcode: int, *, to: "End", offset: int, size_bytes: int, number: int) -> None:
        """Start a write to, or a read from, the same place of the peer's buffer."""
        request = SendWR(
            wr_id=number,
            opcode=opcode,
            num_sge=1,
            sg=[SGE(self.buffer.buf + offset, size_bytes, self.buffer.lkey)],
            send_flags=SIGNALED,
        )
        request.set_wr_rdma(to.buffer.rkey, to.buffer.buf + offset)
        qp.post_send(request)

    def finished(self, count: int, timeout_s: float) -> list[int]:
        """Numbers of ``count`` requests that have succeeded; raises if one fails or the time is over."""
        deadline = time.monotonic() + timeout_s
        numbers: list[int] = []
        while len(numbers) < count:
            _, completions = self.queue.poll(num_entries=count - len(numbers))
            for one in completions:
                if one.status:
                    raise RuntimeError(f"request {one.wr_id} failed with status {one.status}")
                numbers.append(one.wr_id)
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(numbers)} of {count} requests after {timeout_s} s")
            if not completions:
                time.sleep(POLL_S)
        return numbers

    def _gid_index(self) -> int:
        """Where the device's GID of its IPv4 address is."""
        wanted = _mapped(self.host)
        for index in range(16):
            if IPv6Address(self.context.query_gid(1, index).gid) == wanted:
                return index
        raise RuntimeError(f"{self.host.device} has no GID of {self.host.address}")


def connected(left: End, right: End, left_port: int | None, right_port: int | None) -> tuple[QP, QP, Outcome]:
    """Two queue pairs connected with each other; what became of the left one's port."""
    pair = left.fresh(), right.fresh()
    outcomes = []
    for here, there, end, peer, port in (
        (*pair, left, right, left_port),
        (*reversed(pair), right, left, right_port),
    ):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        here.to_init(attr)
        route = GlobalRoute(dgid=GID(_mapped(peer.host).exploded), sgid_index=end.gid_index, hop_limit=16)
        attr = QPAttr(port_num=1)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.dest_qp_num, attr.path_mtu, attr.rq_psn = there.qp_num, MTU_1024, 0
        attr.max_dest_rd_atomic, attr.min_rnr_timer = 1, 12
        outcomes.append(label_at_rtr(attr, port, driver=end.driver))
        here.to_rtr(attr)
        attr = QPAttr()
        attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry = 0, ACK_TIMEOUT, 7, 7
        attr.max_rd_atomic = 1
        here.to_rts(attr)
    return *pair, outcomes[0]


def _mapped(host: Host) -> IPv6Address:
    """A host's IPv4 address as a GID has it."""
    return IPv6Address(f"::ffff:{host.address}")
