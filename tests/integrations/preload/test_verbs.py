"""RoCE: the flow label and the source port arrive as the agent said, and nothing else is touched."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integrations.preload.compiled import PROGRAMS, SOURCES, compile_c, environment, has_header
from tests.integrations.preload.fake_agent import FakeAgent, Lanes, agent

from ark.fabric.roce import flow_label_of_sport

pytestmark = pytest.mark.slow

PORTS = {0: [0xC001, 0xC101], 1: [0xC002, 0xC102], 2: [0xC003, 0xC103]}
RC, UC, UD, XRC_SEND, XRC_RECV = 2, 3, 4, 9, 10
RESET, INIT, RTR, RTS, ERR = 0, 1, 2, 3, 6
STATE, AV, RATE_LIMIT, REFUSED = 1, 1 << 7, 1 << 25, 1 << 30
LABEL = slice(56 + 16, 56 + 20)
GID = slice(56, 56 + 16)
TARGET = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 9])
INIT2RTR, RTR2RTS, RTS2RTS = 0x503, 0x504, 0x505
SPORT = slice(82, 84)


def attr(
    *, state: int = RTR, gid: bytes = TARGET, is_global: bool = True, filling: bytes = b"\x5a"
) -> bytearray:
    """An ibv_qp_attr, of the length that programs compiled with older headers have."""
    made = bytearray(filling * 136)[:136]
    struct.pack_into("=i", made, 0, state)
    made[GID] = gid
    struct.pack_into("=BBB", made, 56 + 28, 0, is_global, 3)
    struct.pack_into("=B", made, 56 + 20, 7)
    return made


def command(
    opcode: int = INIT2RTR, *, sport: int = 0xC000, gid: bytes = TARGET, length: int = 272
) -> bytearray:
    made = bytearray(range(256)) * 2
    made = made[:length]
    made[0:2] = struct.pack(">H", opcode)
    made[64:80] = gid
    made[SPORT] = struct.pack(">H", sport)
    return made


class Engine:
    """The program, started under the library."""

    def __init__(
        self, fakes: dict[str, str], env: dict[str, str], how: str = "local", kind: str = "bundled"
    ) -> None:
        env = env | {"ENGINE": fakes[kind]}
        self.process = subprocess.Popen(
            [fakes["program"], how],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def verbs(self, qp: int, sent: bytes | bytearray, *, kind: int = RC, mask: int = STATE | AV) -> bytearray:
        """What arrives in libibverbs; both say the same of result and mask."""
        result, calls, same_mask, got = self.say(f"verbs {qp} {kind} {mask} {sent.hex()}").split()
        assert (result, calls, same_mask) == ("22" if mask & REFUSED else "0", "1", "1")
        return bytearray.fromhex(got)

    def label(self, qp: int, sent: bytearray, *, kind: int = RC, mask: int = STATE | AV) -> int:
        """The label that arrives; all other bytes are as they were sent."""
        got = self.verbs(qp, sent, kind=kind, mask=mask)
        assert got[LABEL] != sent[LABEL]
        assert got[: LABEL.start] + got[LABEL.stop :] == sent[: LABEL.start] + sent[LABEL.stop :]
        return int.from_bytes(got[LABEL], "little")

    def devx(self, number: int, sent: bytes | bytearray) -> bytearray:
        result, same_object, answered, got = self.say(f"devx {number} {sent.hex()}").split()
        assert (result, same_object, answered) == ("0", "1", "1")
        return bytearray.fromhex(got)

    def sport(self, number: int, sent: bytearray) -> int:
        """The source port that arrives; all other bytes are as they were sent."""
        got = self.devx(number, sent)
        assert got[: SPORT.start] + got[SPORT.stop :] == sent[: SPORT.start] + sent[SPORT.stop :]
        return int.from_bytes(got[SPORT], "big")

    def say(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.stdout.read() == ""
        self.process.stdout.close()
        assert self.process.wait() == 0


@pytest.fixture
def env(sanitized: str, tmp_path: Path) -> dict[str, str]:
    return environment(Path(sanitized), tmp_path / "a.sock")


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[FakeAgent]:
    with agent(tmp_path / "a.sock", PORTS) as made:
        yield made


@pytest.fixture
def engine(fakes: dict[str, str], env: dict[str, str], heard: FakeAgent) -> Iterator[Engine]:
    made = Engine(fakes, env)
    yield made
    made.close()


def test_our_picture_of_the_structures_is_that_of_the_header(scratch: Path, tmp_path: Path) -> None:
    if not has_header("infiniband/verbs.h"):
        pytest.skip("needs libibverbs' headers: apt-get install libibverbs-dev")
    compile_c(tmp_path / "abi.o", [PROGRAMS / "abi.c"], "-c", f"-I{SOURCES}")


def test_queue_pairs_are_spread_by_their_labels(engine: Engine, heard: FakeAgent) -> None:
    labels = [engine.label(number, attr()) for number in range(6)]
    assert sorted(labels) == sorted(flow_label_of_sport(port) for ports in PORTS.values() for port in ports)
    first = heard.heard[0]
    assert isinstance(first, Lanes)
    assert (first.target, first.nic, first.dport, first.proto) == ("10.0.0.9", "10.0.3.7", 4791, 17)


@pytest.mark.parametrize("kind", [RC, UC, XRC_SEND, XRC_RECV])
def test_every_connected_type_is_steered(engine: Engine, kind: int) -> None:
    assert engine.label(0, attr(), kind=kind)


@pytest.mark.parametrize(
    ("sent", "kind", "mask"),
    [
        (attr(), UD, STATE | AV),
        (attr(), RC, STATE),
        (attr(), RC, AV),
        (attr(state=INIT), RC, STATE | AV),
        (attr(state=RTS), RC, STATE | AV),
        (attr(is_global=False), RC, STATE | AV),
    ],
)
def test_other_calls_pass_untouched(
    engine: Engine, heard: FakeAgent, sent: bytearray, kind: int, mask: int
) -> None:
    assert engine.verbs(0, sent, kind=kind, mask=mask) == sent
    assert heard.heard == []


def test_the_youngest_field_is_copied_only_where_it_is_meant(engine: Engine) -> None:
    sent = attr() + bytearray(b"\x01\x02\x03\x04\0\0\0\0")
    assert engine.label(0, sent, mask=STATE | AV | RATE_LIMIT)


def test_ipv6_targets_are_named_as_such(engine: Engine, heard: FakeAgent) -> None:
    gid = bytes.fromhex("fd00") + bytes(13) + b"\x01"
    engine.label(0, attr(gid=gid))
    assert heard.heard[0].target == "fd00::1"  # type: ignore[union-attr]


def test_a_queue_pair_to_itself_is_left_alone(engine: Engine, heard: FakeAgent) -> None:
    sent = attr(gid=bytes(10) + b"\xff\xff" + bytes([10, 0, 3, 7]))
    assert engine.verbs(0, sent) == sent
    assert heard.heard == []


def test_paths_are_free_again_when_queue_pairs_go(engine: Engine) -> None:
    """Destroyed, reset, in error, or refused by the driver: the next one gets the path that is used least."""
    first = [engine.label(number, attr()) for number in range(3)]
    by_label = {flow_label_of_sport(port): path for path, ports in PORTS.items() for port in ports}
    assert engine.say("destroy 0") == "0\n"
    again = engine.label(10, attr())
    assert by_label[again] == by_label[first[0]]
    for state in (RESET, ERR):
        engine.verbs(1, attr(state=state), mask=STATE)
        again = engine.label(1, attr())
        assert by_label[again] == by_label[first[1]]
    engine.verbs(2, attr(state=ERR), mask=STATE)
    engine.verbs(11, attr(), mask=STATE | AV | REFUSED)
    again = engine.label(12, attr())
    assert by_label[again] == by_label[first[2]]


def test_devx_commands_get_the_port(engine: Engine, heard: FakeAgent) -> None:
    ports = [engine.sport(number, command()) for number in range(6)]
    assert sorted(ports) == sorted(port for of_path in PORTS.values() for port in of_path)
    first = heard.heard[0]
    assert isinstance(first, Lanes)
    assert (first.target, first.nic, first.dport, first.proto) == ("10.0.0.9", "", 4791, 17)


@pytest.mark.parametrize(
    "sent",
    [
        command(RTR2RTS),
        command(sport=0),  # InfiniBand, RoCE v1
        command(gid=bytes(16)),
        command()[:83],
        command(0x0805),
        command()[:1],
    ],
)
def test_other_devx_commands_pass_untouched(engine: Engine, heard: FakeAgent, sent: bytearray) -> None:
    assert engine.devx(0, sent) == sent
    assert heard.heard == []


def test_a_running_devx_queue_pair_keeps_its_port(engine: Engine) -> None:
    """RTS2RTS is changed only where the command itself sets the port, and only to what ARK chose before."""
    moving = command(RTS2RTS, gid=bytes(16))
    moving[271] |= 4
    still = command(RTS2RTS)
    still[271] &= ~4
    assert engine.devx(0, moving) == moving
    port = engine.sport(0, command())
    assert engine.devx(0, still) == still
    assert engine.sport(0, moving) == port
    assert engine.say("undevx 0") == "0\n"
    assert engine.devx(0, moving) == moving


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from([INIT2RTR, RTR2RTS, RTS2RTS, 0x501]),
    body=st.binary(max_size=300),
    opcode=st.one_of(st.none(), st.integers(0, 0xFFFF)),
)
def test_any_bytes_of_a_command_change_by_two_at_most(
    engine: Engine, start: int, body: bytes, opcode: int | None
) -> None:
    sent = bytearray(struct.pack(">H", start if opcode is None else opcode) + body)
    got = engine.devx(1, sent)
    assert len(got) == len(sent)
    assert {place for place, (a, b) in enumerate(zip(sent, got, strict=True)) if a != b} <= {82, 83}


@pytest.mark.parametrize(
    ("how", "kind", "steered"),
    [
        ("local", "system", True),
        ("local", "bundled", True),
        ("deep", "bundled", False),
        ("shim", "system", True),
        ("handle", "system", False),
    ],
)
def test_who_is_seen_and_who_escapes(
    fakes: dict[str, str], library: Path, heard: FakeAgent, how: str, kind: str, steered: bool
) -> None:
    """NCCL asks a handle for its functions: that of our stand-in, where NCCL_IBVERBS_LIB names it."""
    env = environment(library, heard.path)
    env["LD_LIBRARY_PATH"] = str(Path(fakes["system"]).parent)
    env["IBVERBS_LIB"] = (
        str(library.with_name("libark_ibverbs.so")) if how == "shim" else fakes[f"{kind}-verbs"]
    )
    if how == "shim":
        del env["LD_PRELOAD"]
    engine = Engine(fakes, env, "handle" if how == "shim" else how, kind)
    assert (engine.verbs(0, attr()) != attr()) == steered
    engine.close()


@pytest.mark.parametrize("switch", ["variable", "file", "no agent"])
def test_switched_off_nothing_is_touched(
    fakes: dict[str, str], env: dict[str, str], tmp_path: Path, switch: str
) -> None:
    if switch == "file":
        (tmp_path / "a.sock.off").touch()
    with agent(tmp_path / ("b.sock" if switch == "no agent" else "a.sock"), PORTS) as heard:
        engine = Engine(fakes, env | ({"ARK_RUN": "off"} if switch == "variable" else {}))
        assert engine.verbs(0, attr()) == attr()
        assert engine.devx(0, command()) == command()
        engine.close()
        assert heard.heard == []
