"""Which driver a device has: the kernel's answers, read with care."""

import shutil
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import LabError, LocalProtocolError
from ark.integrations.roce import BY_NAME, DRIVERS, Driver, Label, Move, driver_of
from ark.integrations.roce import device as module
from ark.integrations.roce.device import attribute, attributes, driver_in, messages

HEADERS = Path("/usr/include/rdma/rdma_netlink.h")
COMPILER = shutil.which("cc") or shutil.which("gcc")


def message(kind: int, body: bytes) -> bytes:
    whole = struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body
    return whole + bytes(-len(whole) % 4)


@given(st.dictionaries(st.integers(1, 0x3FFF), st.binary(max_size=40), max_size=8))
def test_attributes_are_read_as_they_were_written(values: dict[int, bytes]) -> None:
    body = b"".join(attribute(kind, value) for kind, value in values.items())
    assert attributes(body) == values
    assert list(messages(message(17, body) + message(3, b""))) == [(17, body), (3, b"")]


@given(st.binary(max_size=200))
def test_garbage_ends_the_reading(data: bytes) -> None:
    for _, body in messages(data):
        attributes(body)
    driver_in(attributes(data), "x")


@given(st.integers(0, 40))
def test_of_an_answer_that_is_cut_off_the_whole_attributes_count(cut: int) -> None:
    name, number = attribute(module.DEV_NAME, b"rxe0\0"), attribute(module.DRIVER_ID, struct.pack("=Q", 14))
    found = attributes((name + number)[:cut])
    assert (module.DEV_NAME in found) == (cut >= 9)
    assert (driver_in(found, "rxe0") is BY_NAME["rxe"]) == (cut >= len(name + number))


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_drivers_are_known_by_their_number(driver: Driver) -> None:
    answer = {module.DRIVER_ID: struct.pack("=Q", driver.number)}
    assert driver_in(answer, "x_0") is driver


def test_a_new_driver_is_named_by_its_number_and_promised_nothing() -> None:
    found = driver_in({module.DRIVER_ID: struct.pack("=Q", 240)}, "zx_0")
    assert (found.label, found.move) == (Label.UNPROVEN, Move.NONE)
    assert found.why_not_moved == 'ARK does not know the driver "number 240 of zx_0"'


def device(index: int, name: bytes) -> bytes:
    about = attribute(module.DEV_INDEX, struct.pack("=I", index)) + attribute(module.DEV_NAME, name + b"\0")
    return message(module.NLDEV << 10 | module.GET, about)


def conversation(name: str, *answers: bytes) -> tuple[Driver, list[bytes]]:
    """Ask a socket that has these answers ready: the driver, and what was asked."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.settimeout(1)
        theirs.settimeout(1)
        for answer in answers:
            theirs.send(answer)
        found = module.asked_of(ours, name)
        return found, [theirs.recv(4096) for _ in range(2)]


def test_the_kernel_is_asked_for_the_number_and_then_for_the_driver() -> None:
    devices = device(3, b"rxe0") + device(7, b"mlx5_0"), message(module.NLMSG_DONE, bytes(4))
    number = message(
        module.NLDEV << 10 | module.GET_CHARDEV, attribute(module.DRIVER_ID, struct.pack("=Q", 1))
    )
    found, asked = conversation("mlx5_0", *devices, number)
    assert found is BY_NAME["mlx5"]
    assert [struct.unpack_from("=IHH", one)[1:] for one in asked] == [(0x1401, 0x301), (0x140F, 0x1)]
    assert attributes(asked[1][16:]) == {
        module.DEV_INDEX: struct.pack("=I", 7),
        module.CHARDEV_TYPE: b"uverbs\0",
    }


def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(LocalProtocolError, match='"mlx5_9" is no RDMA device; there are mlx5_0, rxe0'):
        conversation("mlx5_9", device(3, b"rxe0") + device(7, b"mlx5_0"), message(module.NLMSG_DONE, b""))


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    with pytest.raises(PermissionError):
        conversation("rxe0", message(module.NLMSG_ERROR, struct.pack("=i", -1)))


def test_without_rdma_or_the_device_it_is_said() -> None:
    with pytest.raises((LabError, LocalProtocolError), match=r"modprobe ib_uverbs|is no RDMA device"):
        driver_of("no-such-device")


@pytest.mark.skipif(not HEADERS.is_file() or COMPILER is None, reason="needs linux-libc-dev and a C compiler")
def test_numbers_are_those_of_the_kernels_headers(tmp_path: Path) -> None:
    names = {
        "RDMA_NL_NLDEV": module.NLDEV,
        "RDMA_NLDEV_CMD_GET": module.GET,
        "RDMA_NLDEV_CMD_GET_CHARDEV": module.GET_CHARDEV,
        "RDMA_NLDEV_ATTR_DEV_INDEX": module.DEV_INDEX,
        "RDMA_NLDEV_ATTR_DEV_NAME": module.DEV_NAME,
        "RDMA_NLDEV_ATTR_CHARDEV_TYPE": module.CHARDEV_TYPE,
        "RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID": module.DRIVER_ID,
        "NLMSG_ERROR": module.NLMSG_ERROR,
        "NLMSG_DONE": module.NLMSG_DONE,
        "NETLINK_RDMA": module.NETLINK_RDMA,
        **{
            f"RDMA_DRIVER_{name.upper()}": BY_NAME[name].number
            for name in ("mlx5", "bnxt_re", "irdma", "hns", "rxe", "efa", "siw", "erdma")
        },
    }
    checks = "".join(f'_Static_assert({name} == {number}, "{name}");\n' for name, number in names.items())
    source = tmp_path / "numbers.c"
    includes = "".join(
        f"#include <{header}>\n"
        for header in ("linux/netlink.h", "rdma/rdma_netlink.h", "rdma/ib_user_ioctl_verbs.h")
    )
    source.write_text(includes + checks)
    assert COMPILER is not None
    done = subprocess.run([COMPILER, "-fsyntax-only", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
