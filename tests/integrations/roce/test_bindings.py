"""The two Python bindings: stand-ins that behave as they do, and the names in the real ones."""

import os
import subprocess
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ark.fabric.roce import flow_label_of_sport
from ark.integrations.roce import BY_NAME, NotSteered, Steered, on_ibverbs, on_pyverbs

ROOT = Path(__file__).resolve().parents[3]
DEBIAN_PYTHON = Path("/usr/bin/python3")
PORT = 50_001
LABEL = flow_label_of_sport(PORT)


class PyverbsError(Exception):
    """As pyverbs has it."""


class PyverbsRDMAError(PyverbsError):
    """As pyverbs has it."""

    def __init__(self, error_code: int) -> None:
        super().__init__(f"Failed. Errno: {error_code}")
        self.error_code = error_code


@dataclass
class Address:
    """An ``AHAttr``."""

    is_global: int = 1
    flow_label: int = 0


class QPAttr:
    """``pyverbs.qp.QPAttr``: reading ``ah_attr`` gives a copy."""

    def __init__(self, qp_state: int = 0) -> None:
        self.qp_state = qp_state
        self.sq_draining = 0
        self._address = Address()

    @property
    def ah_attr(self) -> Address:
        return Address(self._address.is_global, self._address.flow_label)

    @ah_attr.setter
    def ah_attr(self, address: Address) -> None:
        self._address = Address(address.is_global, address.flow_label)


@dataclass
class QP:
    """A queue pair of pyverbs on rxe."""

    attr: QPAttr = field(default_factory=lambda: QPAttr(qp_state=3))
    refuses: int = 0

    def query(self, mask: int) -> tuple[QPAttr, None]:
        assert mask in {on_pyverbs.STATE, on_pyverbs.AV}
        return self.attr, None

    def modify(self, attr: QPAttr, mask: int) -> None:
        if mask == self.refuses:
            raise PyverbsRDMAError(22)
        if mask == on_pyverbs.STATE:
            self.attr.qp_state = attr.qp_state
        else:
            assert mask == on_pyverbs.AV
            self.attr.ah_attr = attr.ah_attr


class Mlx5QP:
    """``pyverbs.providers.mlx5.mlx5dv.Mlx5QP``."""

    answer = 0
    seen: ClassVar[list[tuple[Any, int]]] = []

    @staticmethod
    def modify_udp_sport(qp: Any, udp_sport: int) -> None:
        Mlx5QP.seen.append((qp, udp_sport))
        if Mlx5QP.answer:
            raise PyverbsRDMAError(Mlx5QP.answer)


@pytest.fixture
def pyverbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the modules of pyverbs."""
    contents: dict[str, dict[str, object]] = {
        "pyverbs": {},
        "pyverbs.qp": {"QPAttr": QPAttr},
        "pyverbs.pyverbs_error": {"PyverbsError": PyverbsError, "PyverbsRDMAError": PyverbsRDMAError},
        "pyverbs.providers": {},
        "pyverbs.providers.mlx5": {},
        "pyverbs.providers.mlx5.mlx5dv": {"Mlx5QP": Mlx5QP},
    }
    for name, names in contents.items():
        made = types.ModuleType(name)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setattr(Mlx5QP, "answer", 0)
    monkeypatch.setattr(Mlx5QP, "seen", [])


def test_the_label_stands_in_the_attributes_of_rtr() -> None:
    attr = QPAttr()
    assert on_pyverbs.label_at_rtr(attr, PORT, driver=BY_NAME["mlx5"])
    assert attr.ah_attr.flow_label == LABEL
    assert not on_pyverbs.label_at_rtr(attr, None, driver=BY_NAME["mlx5"])
    assert attr.ah_attr.flow_label == 0


def test_without_a_global_route_nothing_is_changed() -> None:
    attr = QPAttr()
    attr.ah_attr = Address(is_global=0, flow_label=7)
    assert not on_pyverbs.label_at_rtr(attr, PORT, driver=BY_NAME["rxe"])
    assert attr.ah_attr == Address(0, 7)


@pytest.mark.usefixtures("pyverbs")
def test_rxe_is_drained_and_moved() -> None:
    qp = QP()
    assert on_pyverbs.move(qp, PORT, driver=BY_NAME["rxe"]) == Steered(PORT, "drain and move")
    assert (qp.attr.qp_state, qp.attr.ah_attr.flow_label) == (3, LABEL)


@pytest.mark.usefixtures("pyverbs")
def test_refusals_of_pyverbs_are_reasons() -> None:
    qp = QP(refuses=on_pyverbs.AV)
    outcome = on_pyverbs.move(qp, PORT, driver=BY_NAME["rxe"])
    assert isinstance(outcome, NotSteered)
    assert "Errno: 22" in outcome.reason
    assert qp.attr.qp_state == 3


@pytest.mark.usefixtures("pyverbs")
def test_mlx5_is_moved_by_its_own_call() -> None:
    qp = QP()
    assert on_pyverbs.move(qp, PORT, driver=BY_NAME["mlx5"]) == Steered(PORT, "mlx5dv_modify_qp_udp_sport")
    assert Mlx5QP.seen == [(qp, PORT)]
    Mlx5QP.answer = 95
    outcome = on_pyverbs.move(qp, PORT, driver=BY_NAME["mlx5"])
    assert isinstance(outcome, NotSteered)
    assert "lacks the ability" in outcome.reason


def test_a_pyverbs_without_its_mlx5_part_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    outcome = on_pyverbs.move(QP(), PORT, driver=BY_NAME["mlx5"])
    assert isinstance(outcome, NotSteered)
    assert "no mlx5 part" in outcome.reason


@pytest.mark.parametrize("name", ["irdma", "hns", "efa", "siw", "mana", "ionic", "erdma", "bnxt_re"])
def test_others_are_left_alone_with_a_reason(name: str) -> None:
    outcome = on_pyverbs.move(object(), PORT, driver=BY_NAME[name])
    assert isinstance(outcome, NotSteered)
    assert name in outcome.reason


def test_rtr_of_the_package_ibverbs_carries_the_label() -> None:
    ibverbs = pytest.importorskip(
        "ibverbs", reason="needs the package ibverbs and libibverbs.so.1", exc_type=ImportError
    )
    seen: dict[str, Any] = {}

    class Recorder:
        def modify(self, attr_mask: int, ah_attr: Any = None, **fields: int) -> None:
            seen.update(fields, mask=attr_mask, ah_attr=ah_attr)

    address = ibverbs.AHAttr(dgid=bytes(16), sgid_index=1)
    remote = ibverbs.QPInfo(qp_num=17, psn=5, lid=0, gid=bytes(16), port=1, mtu=3)
    assert on_ibverbs.to_rtr(Recorder(), remote, address, PORT, driver=BY_NAME["rxe"])
    assert address.flow_label == LABEL
    assert seen.pop("ah_attr") is address
    masks = ibverbs.QPAttrMask
    assert seen == {
        "mask": masks.STATE
        | masks.AV
        | masks.PATH_MTU
        | masks.DEST_QPN
        | masks.RQ_PSN
        | masks.MAX_DEST_RD_ATOMIC
        | masks.MIN_RNR_TIMER,
        "qp_state": ibverbs.QPState.RTR,
        "path_mtu": 3,
        "dest_qp_num": 17,
        "rq_psn": 5,
        "max_dest_rd_atomic": 1,
        "min_rnr_timer": 12,
    }
    assert "ah_attr" in ibverbs.QP.modify.__doc__
    assert "flow_label" not in ibverbs.QP.to_rtr.__doc__


_CONTRACT = """\
import sys
try:
    import pyverbs.qp, pyverbs.addr, pyverbs.device, pyverbs.enums as e
    from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
    from pyverbs.providers.mlx5.mlx5dv import Mlx5QP
except ImportError as error:
    print(f"skip: {error}")
    sys.exit()
from ark.integrations.roce import BY_NAME, on_pyverbs
attr = pyverbs.qp.QPAttr(port_num=1)
route = pyverbs.addr.GlobalRoute(sgid_index=1, hop_limit=16)
attr.ah_attr = pyverbs.addr.AHAttr(gr=route, is_global=1, port_num=1)
assert on_pyverbs.label_at_rtr(attr, 50001, driver=BY_NAME["rxe"])
assert attr.ah_attr.flow_label == 849 and attr.ah_attr.hop_limit == 16 and attr.ah_attr.sgid_index == 1
assert (on_pyverbs.STATE, on_pyverbs.AV) == (e.IBV_QP_STATE, e.IBV_QP_AV)
assert pyverbs.qp.QPAttr(qp_state=4).qp_state == e.IBV_QPS_SQD == 4 and e.IBV_QPS_RTS == 3
assert attr.sq_draining == 0
assert {"query", "modify", "to_rtr"} <= set(dir(pyverbs.qp.QP))
assert "udp_sport" in Mlx5QP.modify_udp_sport.__doc__
assert issubclass(PyverbsRDMAError, PyverbsError) and PyverbsRDMAError("x", 95).error_code == 95
print("kept")
"""


@pytest.mark.slow
@pytest.mark.skipif(not DEBIAN_PYTHON.is_file(), reason="needs Debian's python3 with python3-pyverbs")
def test_debians_pyverbs_keeps_the_contract() -> None:
    folders = os.pathsep.join(
        [str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    )
    done = subprocess.run(
        [DEBIAN_PYTHON, "-B", "-c", _CONTRACT],
        env={"PYTHONPATH": folders},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.startswith("skip: "):
        pytest.skip(f"needs python3-pyverbs ({done.stdout.strip().removeprefix('skip: ')})")
    if "msgspec" in done.stderr:
        pytest.skip("Debian's Python is of another version than this one, for which msgspec is built")
    assert done.stdout.strip() == "kept", done.stderr
