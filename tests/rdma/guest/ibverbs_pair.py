"""A queue pair of the PyPI package ``ibverbs`` on a path that the agent chose."""

import ctypes
import os
import time
from ipaddress import IPv6Address
from typing import Final

import ibverbs
from tests.rdma.guest.agents import Agents
from tests.rdma.guest.capture import Capture
from tests.rdma.guest.ends import ACCESS, ACK_TIMEOUT, SETTLE_S
from tests.rdma.guest.network import HOSTS, Host

from ark.fabric.roce import DPORT
from ark.integrations.roce import driver_of
from ark.integrations.roce.on_ibverbs import to_rtr

SIZE_BYTES: Final = 1 << 16
TIMEOUT_S: Final = 30.0


class _End:
    """A host's device with one queue pair and a buffer."""

    def __init__(self, host: Host) -> None:
        self.host = host
        device = next(one for one in ibverbs.get_device_list() if one.name == host.device)
        self.context = device.open()
        self.domain = self.context.alloc_pd()
        self.queue = self.context.create_cq(16)
        self.memory = ctypes.create_string_buffer(SIZE_BYTES)
        self.region = self.domain.reg_mr(ctypes.addressof(self.memory), SIZE_BYTES, ACCESS)
        self.qp = self.domain.create_qp(
            ibverbs.QPInitAttr(send_cq=self.queue, recv_cq=self.queue, qp_type=ibverbs.QPType.RC)
        )
        wanted = IPv6Address(f"::ffff:{host.address}").packed
        self.gid_index = next(n for n in range(16) if self.context.query_gid(1, n).raw == wanted)

    def info(self) -> ibverbs.QPInfo:
        """What the other end needs."""
        gid = self.context.query_gid(1, self.gid_index)
        return ibverbs.local_qp_info(self.qp, self.context.query_port(1), gid, port=1)

    def connect(self, remote: ibverbs.QPInfo, source_port: int | None) -> str:
        """Connect, and say what became of the port."""
        self.qp.to_init(1, ACCESS)
        address = ibverbs.AHAttr(dgid=remote.gid, sgid_index=self.gid_index, hop_limit=16)
        outcome = to_rtr(self.qp, remote, address, source_port, driver=driver_of(self.host.device))
        self.qp.to_rts(0, timeout=ACK_TIMEOUT)
        return str(outcome)


def ibverbs_pair(agents: Agents) -> dict[str, object]:
    """Send once over a path that the agent chose, and say what was seen."""
    left, right = (_End(host) for host in HOSTS)
    data = os.urandom(SIZE_BYTES)
    left.memory.raw = data
    with agents.client(HOSTS[0]).transfer(HOSTS[1].name, 1 << 24, dport=DPORT) as transfer:
        outcome = left.connect(right.info(), transfer.source_port)
        right.connect(left.info(), None)
        with Capture() as capture:
            request = ibverbs.SendWR(
                sg_list=[ibverbs.SGE(left.region, SIZE_BYTES)],
                opcode=ibverbs.WROpcode.RDMA_WRITE,
                send_flags=ibverbs.SendFlags.SIGNALED,
                remote_addr=right.region.addr,
                rkey=right.region.rkey,
            )
            left.qp.post_send(request)
            deadline = time.monotonic() + TIMEOUT_S
            while not (done := left.queue.poll(1)) and time.monotonic() < deadline:
                time.sleep(0.002)
            for completion in done:
                completion.raise_for_status()
            time.sleep(SETTLE_S)
        return {
            "path": transfer.path,
            "outcome": outcome,
            "spines": capture.spines(HOSTS[0].address, right.qp.qp_num),
            "verified": right.memory.raw == data,
        }
