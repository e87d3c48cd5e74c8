"""Discovery on a fabric that runs, beside the exact model of it."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest

from ark.discover.live import RawSockets, run
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.search import Finding, Search, Task
from ark.errors import LabError
from ark.fabric import Fabric, HashSpec, Nic, route_ports
from ark.lab.clos import Clos, clos


def linux_hash(**options: object) -> HashSpec:
    return HashSpec(function="linux", selection="thresholds", **options)  # type: ignore[arg-type]


@contextmanager
def running(fabric: Fabric, *, seed: int, icmp_limits: bool = False) -> Iterator[Clos]:
    """A fabric whose switches have random seeds, and by default no limit to their ICMP errors; or a skip."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root, iproute2 and network namespaces")
    with clos(fabric) as made:
        draw = Random(seed)
        for switch in fabric.switches:
            try:
                made.write_sysctl(switch.name, ipv4__fib_multipath_hash_seed=draw.randrange(1, 2**32))
            except LabError as error:
                pytest.skip(f"this kernel cannot say its hash seed: {error}")
            if not icmp_limits:
                made.write_sysctl(switch.name, ipv4__icmp_ratelimit=0, ipv6__icmp__ratelimit=0)
        yield made


def discovered(made: Clos, pairs: Sequence[tuple[Nic, Nic]], **options: object) -> list[Finding]:
    """What a search from each source finds; all sources must be one NIC."""
    proto = options.pop("proto", 17)
    ports = options.pop("ports", range(50_000, 50_500))
    tasks = [
        Task(
            Flow(a.address, b.address, proto, 0, 4791),  # type: ignore[arg-type]
            ports,  # type: ignore[arg-type]
            names=made.addresses,
            **{"per_path": None, **options},  # type: ignore[arg-type]
        )
        for a, b in pairs
    ]
    searches = [Search(task) for task in tasks]
    prober = Prober(searches, nonce=0x123456, fastest_ns=1_000_000)
    with made.inside(pairs[0][0].name):
        sockets = RawSockets(made.version)
    with sockets:
        run(prober, sockets)
    prober.check()
    return [search.finding() for search in searches]


def assert_exact(made: Clos, finding: Finding, source: Nic, target: Nic, *, proto: int = 17) -> None:
    """Every port that was learned takes the path that the kernel's own hash and seeds say."""
    model = made.as_running()
    ports = np.array(sorted(finding.ports))
    expected = route_ports(model, source, target, ports, proto=proto)
    switches = {
        path.index: tuple(model.links[link].target for link in path.links[:-1])
        for path in model.paths(source, target)
    }
    wrong = [
        port
        for port, path in zip(ports.tolist(), expected.tolist(), strict=True)
        if finding.switches(port) != switches[path]
    ]
    assert wrong == []
