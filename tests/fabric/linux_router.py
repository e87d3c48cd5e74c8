"""A router made of the running kernel, in a network namespace of its own that is thrown away after use.

``in0`` receives, ``out0``, ``out1``, … are its next hops. Two ways to ask where a packet goes: ``ip route
get``, and real forwarding of frames (``frames.py``). Needs root, iproute2 and Linux 6.11 (for the hash
seed).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ark.fabric.five_tuple import FiveTuple

ROUTER_MAC = "02:00:00:00:01:00"
FRAMES = Path(__file__).with_name("frames.py")


class LinuxRouter:
    def __init__(self, namespace: str, next_hops: int) -> None:
        self.namespace = namespace
        self.next_hops = next_hops

    def ip(self, *lines: str) -> str:
        """Run lines of ``ip`` commands in the namespace and return what they print."""
        command = ["ip", "-n", self.namespace, "-batch", "-"]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{done.stderr.strip()} in: {lines}")
        return done.stdout

    def sysctl(self, **values: int) -> None:
        """Set values under net; two underscores stand for a slash."""
        writes = [f"echo {value} > /proc/sys/net/{name.replace('__', '/')}" for name, value in values.items()]
        command = ["ip", "netns", "exec", self.namespace, "sh", "-e", "-c", "; ".join(writes)]
        subprocess.run(command, check=True, capture_output=True)

    def set_hash(self, *, seed: int, policy: int, fields: int) -> None:
        self.sysctl(
            ipv4__fib_multipath_hash_seed=seed,
            ipv4__fib_multipath_hash_policy=policy,
            ipv4__fib_multipath_hash_fields=fields,
            ipv6__fib_multipath_hash_policy=policy,
            ipv6__fib_multipath_hash_fields=fields,
        )

    def set_routes(self, weights: Sequence[int]) -> None:
        """Route 10.9.0.0/16 and fd09::/64 over the first next hops with these weights."""
        hops4 = [f"nexthop via 10.2.{k}.2 dev out{k} weight {w}" for k, w in enumerate(weights)]
        hops6 = [f"nexthop via fd02:{k}::2 dev out{k} weight {w}" for k, w in enumerate(weights)]
        self.ip(f"route replace 10.9.0.0/16 {' '.join(hops4)}", f"route replace fd09::/64 {' '.join(hops6)}")

    def look_up(self, flows: Sequence[FiveTuple]) -> list[int]:
        """What ``ip route get`` answers for packets that come in at ``in0``."""
        names = {6: "tcp", 17: "udp"}
        printed = self.ip(
            *(
                f"route get {flow.dst} from {flow.src} iif in0 "
                f"ipproto {names[flow.proto]} sport {flow.sport} dport {flow.dport}"
                for flow in flows
            )
        )
        return [int(number) for number in re.findall(r" dev out(\d+)", printed)]

    def forward(self, flows: Sequence[FiveTuple]) -> list[int]:
        """Where real packets leave that come in at ``in0``."""
        command = ["ip", "netns", "exec", self.namespace, sys.executable, str(FRAMES)]
        asked = {
            "router_mac": ROUTER_MAC,
            "next_hops": self.next_hops,
            "packets": [
                [flow.src, flow.dst, flow.proto, flow.sport, flow.dport, flow.flow_label] for flow in flows
            ],
        }
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
        left: list[int] = json.loads(done.stdout)
        return left


@contextmanager
def linux_router(next_hops: int) -> Iterator[LinuxRouter]:
    """A router in a new namespace, or a skip with the reason."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2 to make a network namespace")
    namespace = f"ark-hash-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", namespace], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"cannot make a network namespace: {made.stderr.strip()}")
    try:
        router = LinuxRouter(namespace, next_hops)
        _set_up(router)
        yield router
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=True)


def _set_up(router: LinuxRouter) -> None:
    try:
        router.ip(f"link add in0 address {ROUTER_MAC} type veth peer name in1")
        router.set_hash(seed=1, policy=1, fields=0x37)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this kernel has no veth or no seed for the multipath hash (Linux 6.11): {error}")
    router.sysctl(ipv4__ip_forward=1, ipv6__conf__all__forwarding=1)
    lines = ["link set lo up", "link set in1 up", "link set in0 up", "addr add 10.1.0.1/16 dev in0"]
    lines += ["addr add fd01::1/64 dev in0 nodad"]
    for k in range(router.next_hops):
        lines += [
            f"link add out{k} type veth peer name far{k}",
            f"link set far{k} up",
            f"link set out{k} up",
            f"addr add 10.2.{k}.1/24 dev out{k}",
            f"addr add fd02:{k}::1/64 dev out{k} nodad",
            f"neigh add 10.2.{k}.2 lladdr 02:00:00:00:02:{k:02x} dev out{k} nud permanent",
            f"neigh add fd02:{k}::2 lladdr 02:00:00:00:02:{k:02x} dev out{k} nud permanent",
        ]
    router.ip(*lines)
