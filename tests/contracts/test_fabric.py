"""The real engines over a fabric of namespaces, under ``ark run``: each transfer's bytes on the spine chosen.

Emulated: Linux routers and veth cables, TCP, host memory. The agents, the preload library, the adapters and
the engines are the real ones; a sender knows the paths of its connections from the log of ``ark run`` alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort, cohort
from tests.contracts.processes import ROOT, run, sender, unpacked
from tests.contracts.wheels import Wheel

from ark.fabric import HashSpec, leaf_spine
from ark.fabric.write import to_toml
from ark.integrations.preload import LIBRARY
from ark.lab.clos import Clos, clos
from ark.lab.counters import Counters

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
    pytest.mark.skipif(not LIBRARY.exists(), reason="the preload library is not built"),
]

TRANSFERS = 30
SIZE = 4 << 20


class Lab(NamedTuple):
    """Two hosts and four spines between them, and the hosts' agents."""

    made: Clos
    agents: Cohort
    counters: Counters

    def uplinks(self) -> list[int]:
        """Bytes that h0's leaf has sent to each spine so far."""
        self.counters.read(0.0)
        counts: list[int] = self.counters.series()[1][-1].tolist()
        return counts


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    spec = HashSpec(function="linux", selection="thresholds", seed=9)
    folder = tmp_path_factory.mktemp("agents")
    with clos(leaf_spine(2, 4, 1, hash=spec)) as made:
        write_cluster(folder)
        (folder / "fabric.toml").write_text(to_toml(made.as_running()))
        with cohort(folder, 2, more='[policy]\nhold = "0"\nmin_bytes = "100 kB"\n') as agents:
            links = {link.target: link.index for link in made.fabric.links if link.source == "leaf0"}
            counters = Counters(made, [links[f"spine{path}"] for path in range(4)])
            try:
                yield Lab(made, agents, counters)
            finally:
                counters.close()


def _inside(made: Clos, host: str) -> tuple[str, ...]:
    return "ip", "netns", "exec", made.namespace(host)


@pytest.mark.parametrize("engine", ["mooncake", "nixl"])
def test_each_transfer_goes_over_the_spine_chosen(
    request: pytest.FixtureRequest, lab: Lab, tmp_path: Path, engine: str
) -> None:
    wheel: Wheel = request.getfixturevalue(engine)
    fabric = lab.made.fabric
    h0, h1 = (next(str(nic.address) for nic in fabric.nics if nic.host == name) for name in ("h0", "h1"))
    settings = {
        "PYTHONPATH": f"{unpacked(wheel, tmp_path / 'packages')}:{ROOT}",
        "ARK_SOCKET": str(lab.agents.folder / "h0.sock"),
        "SENDER": h0,
        "RECEIVER": h1,
        "UCX_TLS": "tcp",
    }
    spines = []
    with sender(
        f"{engine}_program",
        tmp_path,
        settings,
        receiving=_inside(lab.made, "h1"),
        sending=(*_inside(lab.made, "h0"), *run(tmp_path)),
    ) as running:
        for _ in range(TRANSFERS):
            before = lab.uplinks()
            chosen = running.transfer().chosen
            grown = [after - earlier for after, earlier in zip(lab.uplinks(), before, strict=True)]
            spines.append((chosen, grown.index(max(grown)), max(grown) >= SIZE > 20 * sorted(grown)[-2]))
    assert spines == [(path, path, True) for path, _, _ in spines]
    assert len(set(spines)) > 1
