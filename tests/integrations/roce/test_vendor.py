"""Vendors' calls, against a small versioned library that was compiled for it."""

import ctypes
import errno
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import LocalProtocolError
from ark.fabric.roce import SPORTS
from ark.integrations.roce import BY_NAME, DRIVERS, Driver, Move, NotSteered, Steered, modify_udp_sport
from ark.integrations.roce.vendor import judged

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = Path(__file__).with_name("fake_vendor.c")
QP = 0x7F00_1234_5678
CALLING = [driver for driver in DRIVERS if driver.move is Move.CALL]

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler; run: apt-get install gcc")


def compiled(folder: Path, driver: Driver, *, has_call: bool = True) -> Path:
    """A library of a driver's vendor, with the symbol's version if it has the call."""
    assert COMPILER is not None
    assert driver.call is not None
    symbol = driver.call.symbol
    library = folder / f"{driver.name}-{has_call}.so"
    versions = folder / "versions"
    versions.write_text("VENDOR_1.17 { global: *; };\n")
    more = [f"-DNAME={symbol}", "-DHAS_CALL"] if has_call else []
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", *more, f"-Wl,--version-script={versions}", "-o", library, SOURCE],
        check=True,
    )
    return library


def set_answer(library: Path, value: int, errno_after: int = 0) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    ctypes.c_int.in_dll(loaded, "answer").value = value
    ctypes.c_int.in_dll(loaded, "answer_errno").value = errno_after
    ctypes.c_int.in_dll(loaded, "calls").value = 0
    return loaded


@needs_compiler
@pytest.mark.parametrize("driver", CALLING, ids=lambda driver: driver.name)
def test_the_call_gets_the_queue_pair_and_the_port(tmp_path: Path, driver: Driver) -> None:
    library = compiled(tmp_path, driver)
    loaded = set_answer(library, 0)
    assert driver.call is not None
    for port in (SPORTS.start, 50_001, SPORTS.stop - 1):
        outcome = modify_udp_sport(driver, QP, port, libraries=[str(library)])
        assert outcome == Steered(port, driver.call.symbol)
        assert ctypes.c_size_t.in_dll(loaded, "seen_qp").value == QP
        assert ctypes.c_uint32.in_dll(loaded, "seen_port").value == port
    assert ctypes.c_int.in_dll(loaded, "calls").value == 3


@needs_compiler
@pytest.mark.parametrize(
    ("value", "errno_after", "said"),
    [
        (errno.EOPNOTSUPP, 0, "lacks the ability, or the queue pair is not in RTS"),
        (-errno.EOPNOTSUPP, 0, "lacks the ability"),
        (-1, errno.EOPNOTSUPP, "lacks the ability"),
        (errno.EINVAL, 0, "failed: Invalid argument (EINVAL)"),
        (-errno.EINVAL, 0, "failed: Invalid argument (EINVAL)"),
        (-1, 0, "failed: Operation not permitted (EPERM)"),
        (4095, 0, "failed: code 4095"),
    ],
)
def test_refusals_say_why(tmp_path: Path, value: int, errno_after: int, said: str) -> None:
    library = compiled(tmp_path, BY_NAME["mlx5"])
    set_answer(library, value, errno_after)
    outcome = modify_udp_sport(BY_NAME["mlx5"], QP, 50_000, libraries=[str(library)])
    assert isinstance(outcome, NotSteered)
    assert outcome.reason.startswith("mlx5dv_modify_qp_udp_sport")
    assert said in outcome.reason


@needs_compiler
def test_an_old_library_is_named_with_the_release_that_has_the_call(tmp_path: Path) -> None:
    library = compiled(tmp_path, BY_NAME["mlx5"], has_call=False)
    outcome = modify_udp_sport(BY_NAME["mlx5"], QP, 50_000, libraries=["/no/such.so", str(library)])
    assert outcome == NotSteered(
        f"{library} has no mlx5dv_modify_qp_udp_sport; it is there since rdma-core 33 (MLX5_1.17)"
    )


def test_a_library_that_is_not_there_is_named() -> None:
    outcome = modify_udp_sport(BY_NAME["bnxt_re"], QP, 50_000, libraries=["libnone.so", "libnil.so"])
    assert outcome == NotSteered("no libnone.so or libnil.so can be loaded")


def test_the_installed_libmlx5_has_the_call() -> None:
    call = BY_NAME["mlx5"].call
    assert call is not None
    try:
        library = ctypes.CDLL(call.libraries[0])
    except OSError:
        pytest.skip("needs libmlx5.so.1; run: apt-get install ibverbs-providers")
    assert hasattr(library, call.symbol)


@pytest.mark.parametrize("driver", [one for one in DRIVERS if one.call is None], ids=lambda one: one.name)
def test_no_other_driver_is_called(driver: Driver) -> None:
    outcome = modify_udp_sport(driver, QP, 50_000)
    assert isinstance(outcome, NotSteered)
    assert outcome.reason.startswith(f"{driver.name}: ")


@pytest.mark.parametrize(("address", "port"), [(0, 50_000), (-1, 50_000), (1 << 64, 50_000), (QP, 4791)])
def test_what_is_no_address_or_port_is_refused_before_anything_is_called(address: int, port: int) -> None:
    with pytest.raises(LocalProtocolError):
        modify_udp_sport(BY_NAME["mlx5"], address, port)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1))
def test_only_0_means_done(returned: int, errno_after: int) -> None:
    assert bool(judged("call", 50_000, returned, errno_after)) == (returned == 0)
