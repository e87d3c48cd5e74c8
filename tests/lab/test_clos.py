"""Fabrics out of namespaces: what is built, what is refused, and that nothing is left."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ark.errors import ConfigError, LabError
from ark.fabric import HashSpec, dual_plane, leaf_spine, load_fabric
from ark.lab.clos import clos, sysctls
from ark.lab.namespaces import inside, names_with

PATIENCE_S = 20.0

NAMED_AS_OURS = """
kind = "links"
host = [{name = "h0"}, {name = "h1"}]
switch = [{name = "mgmt", kind = "leaf"}]
link = [
  {between = ["h0", "mgmt"], rate = "1 Gbit/s", delay = "1us"},
  {between = ["h1", "mgmt"], rate = "1 Gbit/s", delay = "1us"},
]
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces")


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (leaf_spine(1, 0, 300), "has 301 hosts and switches; the lab builds 256"),
        (leaf_spine(2, 1, 1, nics_per_host=2), "h0 has several ports; the lab gives a host one"),
        (dual_plane(2, 2, 1), "h0 has several ports; the lab gives a host one"),
        (leaf_spine(2, 1, 1, parallel_links=2, parallel_as="lag"), "has a LAG"),
        (load_fabric(NAMED_AS_OURS, "f.toml"), '"mgmt" is the lab'),
    ],
)
def test_what_the_lab_cannot_build_is_refused(fabric: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message), clos(fabric):  # type: ignore[arg-type]
        pass


def test_hashes_become_sysctls() -> None:
    spec = HashSpec(function="linux", seed=9, selection="thresholds")
    switch = leaf_spine(2, 2, 1, hash=spec).switches[0]
    found = sysctls(switch)
    assert found["ipv4__fib_multipath_hash_policy"] == 3
    assert found["ipv4__fib_multipath_hash_fields"] == 0x37
    assert found["ipv4__fib_multipath_hash_seed"] == 9
    assert sysctls(leaf_spine(2, 2, 1).switches[0]) == {}  # murmur is not what Linux does


def test_without_root_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="network namespaces need root"), clos(leaf_spine(1, 0, 2)):
        pass


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(LabError, match='no network namespace "ark-nowhere"'), inside("ark-nowhere"):
        pass


@needs_root
@pytest.mark.slow
def test_nothing_is_left_after_an_exception() -> None:
    prefix = f"ark-test{os.getpid()}"
    seen: list[str] = []

    def interrupted() -> None:
        with clos(leaf_spine(1, 0, 2), prefix=prefix):
            seen.extend(names_with(f"{prefix}-"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == [f"{prefix}-h0", f"{prefix}-h1", f"{prefix}-leaf0"]
    assert names_with(f"{prefix}-") == []


@needs_root
@pytest.mark.slow
def test_another_fabric_is_not_applied() -> None:
    with clos(leaf_spine(1, 0, 2)) as made:
        with pytest.raises(ConfigError, match="has other links"):
            made.apply(leaf_spine(1, 0, 3))
        assert made.interface(0) == "leaf0"


@needs_root
@pytest.mark.slow
def test_nothing_is_left_after_sigkill() -> None:
    """The sweeper removes the namespaces of a lab that was killed."""
    script = (
        "import time\n"
        "from ark.fabric import leaf_spine\n"
        "from ark.lab.clos import clos\n"
        "with clos(leaf_spine(1, 0, 2), prefix='ark-killed') as made:\n"
        "    print('up', flush=True)\n"
        "    time.sleep(60)\n"
    )
    lab = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert lab.stdout is not None
    assert lab.stdout.readline() == b"up\n"
    names = [entry.name for entry in Path("/run/netns").iterdir() if entry.name.startswith("ark-killed-")]
    assert sorted(names) == ["ark-killed-h0", "ark-killed-h1", "ark-killed-leaf0"]
    lab.kill()
    lab.wait()
    lab.stdout.close()
    end = time.monotonic() + PATIENCE_S
    while any((Path("/run/netns") / name).exists() for name in names) and time.monotonic() < end:
        os.sched_yield()
    assert not any((Path("/run/netns") / name).exists() for name in names)
