"""RC queue pairs of soft RoCE cross a Clos in a virtual machine (``make test-rdma``): no hardware needed.

One boot serves all tests here. Speeds of an emulated machine mean nothing; ports, spines, bytes and coarse
ratios do.
"""

import json
import os
import re
import sys
from typing import Any, Final

import pytest
from tests.rdma.guest_python import PYTHON, ROOT, module_folders
from tests.rdma.kernel import UnavailableError
from tests.rdma.machine import run_in_guest
from tests.rdma.python_files import write_archive

CACHE: Final = ROOT / "build" / "rdma"
MODULES: Final = ("ark.cli.main", "ark.cli.agent", "ark.cli.run", "ark.agent.run", "tests.rdma.guest.main")
FASTER: Final = 5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "ARK_TEST_RDMA" not in os.environ, reason="boots a virtual machine; run: make test-rdma"
    ),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the guest wrote down."""
    out = tmp_path_factory.mktemp("guest")
    try:
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": ":".join(str(folder) for folder in module_folders(CACHE)),
        }
        write_archive(out / "python.tar", python=PYTHON, modules=MODULES, environment=environment)
        outcome = run_in_guest(
            [PYTHON, "-m", "tests.rdma.guest.main"],
            environment={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
            cache=CACHE,
            out=out,
        )
    except UnavailableError as error:
        pytest.skip(str(error))
    result = out / "result.json"
    if not outcome.ended or not result.is_file():
        pytest.fail(
            f"the guest {'ended' if outcome.ended else 'did not end'} without a result\n{outcome.tail()}"
        )
    found: dict[str, Any] = json.loads(result.read_text())
    sys.stdout.write(
        f"guest: Linux {found['kernel']}, driver {found['driver']}; "
        f"{found['moved']['spines']} took {found['moved']['took_s']} s\n"
    )
    return found


def test_the_kernel_names_the_driver(seen: dict[str, Any]) -> None:
    assert seen["driver"] == "rxe"


def test_eight_of_eight_queue_pairs_send_over_the_spine_that_the_agent_chose(seen: dict[str, Any]) -> None:
    assert len(seen["steered"]) == 8
    for pair in seen["steered"]:
        assert list(pair["spines"]) == [str(pair["path"])], pair
        assert pair["ports"] == [pair["source_port"]], pair
    assert {pair["path"] for pair in seen["steered"]} == {0, 1, 2, 3}


def test_with_read_the_side_that_is_read_from_is_steered(seen: dict[str, Any]) -> None:
    verbs = [pair["verb"] for pair in seen["steered"]]
    assert verbs.count("READ") == 2


def test_all_bytes_arrive_as_they_were_sent(seen: dict[str, Any]) -> None:
    assert all(pair["verified"] for pair in seen["steered"])
    assert seen["moved"]["verified"]
    assert seen["ibverbs"]["verified"]


def test_the_package_ibverbs_is_steered_too(seen: dict[str, Any]) -> None:
    assert list(seen["ibverbs"]["spines"]) == [str(seen["ibverbs"]["path"])]


def test_an_unmodified_program_under_ark_run_has_a_queue_pair_on_each_spine(seen: dict[str, Any]) -> None:
    found = seen["unmodified"]
    if "missing" in found:
        pytest.skip(f"needs {found['missing']}")
    assert found["codes"] == [0, 0], found["said"]
    told = [re.search(r"kind=ibv_modify_qp .* path=(\d+) port=(\d+)$", line) for line in found["log"]]
    chosen = {match[2]: [int(match[1])] for match in told if match is not None}
    assert found["spines"] == chosen
    assert sorted(spine for spines in chosen.values() for spine in spines) == [0, 1, 2, 3]


def test_the_real_libmlx5_refuses_what_is_none_of_its_own(seen: dict[str, Any]) -> None:
    assert seen["foreign"].startswith("NotSteered(reason='mlx5dv_modify_qp_udp_sport: the NIC")


def test_without_agents_there_is_no_preference_and_no_harm(seen: dict[str, Any]) -> None:
    assert seen["alone"] == {
        "path": None,
        "reason": "no agent answers",
        "outcome": "NotSteered(reason='no preference')",
        "verified": True,
    }


def test_a_transfer_leaves_a_throttled_spine_and_gets_faster(seen: dict[str, Any]) -> None:
    moved = seen["moved"]
    before, after = moved["paths"]
    slow_s, moved_s, lane_s = moved["took_s"]
    assert before != after
    assert moved["outcome"].startswith("Steered"), moved["outcome"]
    assert [list(spines) for spines in moved["spines"]] == [[str(before)], [str(after)], [str(after)]]
    assert slow_s > FASTER * moved_s, "the same queue pair, by drain and move"
    assert slow_s > FASTER * lane_s, "another queue pair, made ahead"
