"""TCP: unmodified programs connect from the ports that the agent says, and never notice a bad agent."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.preload.compiled import PROGRAMS, compile_c, environment
from tests.integrations.preload.fake_agent import Acquire, FakeAgent, Lanes, Release, agent, well

from ark.client.messages import Grant, Hello, Lane, Refusal, Request, Welcome, frame

pytestmark = pytest.mark.slow

PEER = "127.0.0.2"
AREA = 400 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 6)
"""Where this process of a parallel run looks for free ports: each has its own."""

PREAMBLE = """
import asyncio, json, os, socket, subprocess, sys, time
where = (sys.argv[1], int(sys.argv[2]))
family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
def connect(own=None):
    made = socket.socket(family)
    if own is not None:
        made.bind((own, 0))
    made.connect(where)
    return made
def port(made):
    return made.getsockname()[1]
def say(*values):
    print(json.dumps(values), flush=True)
"""


def free_ports(count: int, start: int, address: str = "127.0.0.1") -> list[int]:
    found: list[int] = []
    with ExitStack() as stack:
        for number in range(start, 0x1_0000):
            probe = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET))
            try:
                probe.bind((address, number))
            except OSError:
                continue
            found.append(number)
            if len(found) == count:
                break
    return found


WITHIN, ABOVE = 52_000, 62_000
"""Ports that the kernel gives away by itself (32768 to 60999), and ports that it does not."""

both = pytest.mark.parametrize("ports", [WITHIN, ABOVE], indirect=True, ids=["within", "above"])


@pytest.fixture
def ports(request: pytest.FixtureRequest) -> dict[int, list[int]]:
    """Source ports of three paths, four each."""
    start: int = getattr(request, "param", WITHIN)
    free = free_ports(12, start + AREA)
    return {path: free[path::3] for path in range(3)}


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "a.sock"


@pytest.fixture
def heard(socket_path: Path, ports: dict[int, list[int]]) -> Iterator[FakeAgent]:
    with agent(socket_path, ports) as made:
        yield made


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Listens, and accepts all that comes."""
    with socket.socket() as made, ExitStack() as accepted:
        made.bind((PEER, 0))
        made.listen(128)

        def accept() -> None:
            while True:
                try:
                    accepted.enter_context(made.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield made
        made.shutdown(socket.SHUT_RDWR)
        thread.join()


class Program:
    """A Python program under the library; it says JSON, a line at a time."""

    def __init__(self, library: Path, path: Path, listener: socket.socket, text: str, **more: str) -> None:
        address, port = listener.getsockname()[:2]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + text, address, str(port)],
            env=environment(library, path, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> list[Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended with {self.process.wait()}"
        found: list[Any] = json.loads(line)
        return found

    def go_on(self) -> None:
        """Let a program that waits for a line go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        _, _ = self.process.communicate()
        assert self.process.returncode == 0


Start = Callable[..., Program]


@pytest.fixture
def start(library: Path, socket_path: Path, listener: socket.socket) -> Iterator[Start]:
    running: list[Program] = []

    def begin(text: str, *, to: socket.socket = listener, **more: str) -> Program:
        running.append(Program(library, socket_path, to, text, **more))
        return running[-1]

    yield begin
    for program in running:
        program.end()


@both
@pytest.mark.parametrize("own", ["None", "'127.0.0.1'"])
def test_connections_are_spread_over_the_paths(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]], own: str, tmp_path: Path
) -> None:
    """Each of the least used path, from a port of its own; also where the program bound to an address."""
    log = tmp_path / "log"
    used = start(
        f"made = [connect({own}) for _ in range(12)]; say(*map(port, made))", ARK_RUN_LOG=str(log)
    ).hear()
    by_port = {number: path for path, numbers in ports.items() for number in numbers}
    assert sorted(used) == sorted(by_port)
    for begin in range(0, 12, 3):
        assert {by_port[number] for number in used[begin : begin + 3]} == {0, 1, 2}
    assert {request.target for request in heard.of(Lanes)} == {PEER}  # type: ignore[union-attr]
    assert {request.nic for request in heard.of(Lanes)} == {"127.0.0.1"}  # type: ignore[union-attr]
    lines = log.read_text().splitlines()
    assert len(lines) == 12
    assert lines[0].endswith(f"path={by_port[used[0]]} port={used[0]}")


@both
def test_without_a_port_left_any_is_taken(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    used = start("made = [connect() for _ in range(14)]; say(*map(port, made))").hear()
    known = {number for numbers in ports.values() for number in numbers}
    assert set(used[:12]) == known
    assert not known & set(used[12:])


@both
def test_ports_of_others_are_passed_over(start: Start, heard: FakeAgent, ports: dict[int, list[int]]) -> None:
    """The first port of each path is held by another program."""
    with ExitStack() as stack:
        for numbers in ports.values():
            other = stack.enter_context(socket.socket())
            other.bind(("127.0.0.1", numbers[0]))
            other.listen()
        used = start("made = [connect() for _ in range(3)]; say(*map(port, made))").hear()
    assert set(used) == {numbers[1] for numbers in ports.values()}


def test_a_closed_connection_frees_its_path(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    text = """
first, *rest = [connect() for _ in range(3)]
before = port(first); first.close(); say(before, port(connect()))
"""
    before, after = start(text).hear()
    path = next(path for path, numbers in ports.items() if before in numbers)
    assert after in ports[path]


@both
def test_a_connection_that_fails_counts_for_nothing(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    with socket.socket() as closed:
        closed.bind((PEER, 0))
        text = """
for _ in range(20):
    try:
        connect()
    except ConnectionRefusedError:
        pass
say(1)
"""
        assert start(text, to=closed).hear() == [1]
    assert len(heard.of(Lanes)) == 1


@both
def test_non_blocking_connections_are_steered(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    text = """
async def many():
    made = [await asyncio.open_connection(*where) for _ in range(6)]
    say(*(writer.get_extra_info("sockname")[1] for _, writer in made))
asyncio.run(many())
"""
    assert set(start(text).hear()) <= {number for numbers in ports.values() for number in numbers}


def test_ipv6_is_steered(start: Start, heard: FakeAgent, ports: dict[int, list[int]]) -> None:
    """Loopback has but one IPv6 address, and nobody is asked about himself: so IPv4 within IPv6."""
    text = """
made = socket.socket(socket.AF_INET6)
made.connect(("::ffff:" + where[0], where[1]))
say(port(made))
"""
    used = start(text).hear()
    assert set(used) <= {number for numbers in ports.values() for number in numbers}
    assert heard.of(Lanes)[0].target == PEER  # type: ignore[union-attr]


def test_other_sockets_are_left_alone(start: Start, heard: FakeAgent) -> None:
    """UDP, a port of the program's own choice, a connection to itself, a listener on a free port."""
    text = """
udp = socket.socket(type=socket.SOCK_DGRAM); udp.connect(where)
own = socket.socket(); own.bind(("127.0.0.1", 0)); chosen = port(own); own.connect(where)
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(); there = server.getsockname()
fixed = socket.socket(); fixed.connect(there)
other = socket.socket(); other.bind(("127.0.0.1", 0)); found = port(other); other.listen()
say(chosen != 0 and port(own) == chosen, there[1] != 0, found != 0 and port(other) == found)
"""
    assert start(text).hear() == [True, True, True]
    assert heard.heard == []


def test_a_size_makes_each_connection_a_transfer(start: Start, heard: FakeAgent) -> None:
    text = (
        "made = [connect() for _ in range(3)]; say(*map(port, made)); made[1].close(); sys.stdin.readline()"
    )
    program = start(text, ARK_RUN_SIZE="12345")
    program.hear()
    heard.wait_for(lambda now: any(isinstance(one, Release) for one in now.heard))
    asked = heard.of(Acquire)
    assert [request.size_bytes for request in asked] == [12_345] * 3  # type: ignore[union-attr]
    assert [one.handle for one in heard.of(Release)] == [asked[1].handle]  # type: ignore[union-attr]
    program.go_on()


@pytest.mark.parametrize("how", ["variable", "file", "later"])
def test_the_kill_switch(start: Start, heard: FakeAgent, socket_path: Path, how: str) -> None:
    off = socket_path.with_name(socket_path.name + ".off")
    if how == "file":
        off.touch()
    program = start(
        "a = connect(); say(port(a)); sys.stdin.readline(); b = connect(); say(port(b))",
        **({"ARK_RUN": "off"} if how == "variable" else {}),
    )
    program.hear()
    asked = len(heard.heard)
    assert asked == (1 if how == "later" else 0)
    off.touch()
    program.go_on()
    program.hear()
    assert len(heard.heard) == asked


def test_a_forked_child_speaks_for_itself(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    """It has a connection of its own to the agent, and leaves its parent's connections to the parent."""
    text = """
first = connect(); say(port(first))
child = os.fork()
if child == 0:
    first.close(); second = connect(); say(port(second)); os._exit(0)
os.waitpid(child, 0)
subprocess.run(["true"], close_fds=True)  # vfork: the child closes what it has inherited, in our memory
third, fourth = connect(), connect(); say(port(third), port(fourth)); sys.stdin.readline()
"""
    program = start(text, ARK_RUN_SIZE="5")
    program.hear()
    program.hear()
    program.hear()
    assert heard.connections == 2
    assert not heard.of(Release)
    program.go_on()


def test_a_child_of_vfork_gives_up_nothing(
    scratch: Path, library: Path, heard: FakeAgent, listener: socket.socket, tmp_path: Path
) -> None:
    program = subprocess.Popen(
        [compile_c(tmp_path / "vfork", [PROGRAMS / "vfork.c"]), PEER, str(listener.getsockname()[1])],
        env=environment(library, heard.path, ARK_RUN_SIZE="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "closed by the child\n"
    assert not heard.of(Release)
    program.stdin.write("\n")
    assert program.stdout.readline() == "closed by us\n"
    heard.wait_for(lambda now: any(isinstance(one, Release) for one in now.heard))
    program.communicate("\n")
    assert program.returncode == 0


@pytest.mark.parametrize("name", ["x" * 39 + "é", "b\udcff", "a\nb"])
def test_a_program_of_any_name_is_steered(
    library: Path, heard: FakeAgent, listener: socket.socket, tmp_path: Path, name: str
) -> None:
    """The name that the agent is told is cut in the midst of a letter, or is no text at all."""
    program = tmp_path / name
    program.symlink_to("/bin/bash")
    address, port = listener.getsockname()
    done = subprocess.run(
        [program, "-c", f"exec 3<>/dev/tcp/{address}/{port}"],
        env=environment(library, heard.path),
        check=False,
    )
    assert done.returncode == 0
    assert len(heard.of(Lanes)) == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_log_that_takes_nothing_delays_nobody(
    start: Start, heard: FakeAgent, tmp_path: Path, kind: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    log = {"pipe": tmp_path / "pipe", "folder": tmp_path, "device": Path("/dev/full")}[kind]
    assert start("say(port(connect()) > 0)", ARK_RUN_LOG=str(log)).hear() == [True]


def test_a_socket_that_is_closed_while_it_connects_holds_nothing(
    start: Start, heard: FakeAgent, tmp_path: Path
) -> None:
    """Another thread closes it; the call itself goes on waiting for a peer that accepts nobody."""
    with socket.socket() as full, ExitStack() as waiting:
        full.bind((PEER, 0))
        full.listen(0)
        for _ in range(3):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        text = """
import threading
made = socket.socket()
threading.Thread(target=lambda: made.connect(where), daemon=True).start()
sys.stdin.readline(); os.close(made.detach()); say(1); sys.stdin.readline(); os._exit(0)
"""
        program = start(text, to=full, ARK_RUN_SIZE="7")
        heard.wait_for(lambda now: any(isinstance(one, Acquire) for one in now.heard))
        program.go_on()
        program.hear()
        heard.wait_for(lambda now: any(isinstance(one, Release) for one in now.heard))
        program.go_on()


NAMESPACE = """
import ctypes
if ctypes.CDLL(None).unshare(0x40000000) != 0:  # a network namespace of its own
    say("none"); sys.exit()
def run(*command):
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"]})
run("ip", "link", "set", "lo", "up")
"""


def needs_namespaces() -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip for a network namespace")


def test_a_port_that_is_reserved_for_a_service_is_left_to_it(
    start: Start, heard: FakeAgent, ports: dict[int, list[int]]
) -> None:
    """As net.ipv4.ip_local_reserved_ports says: the service could not start any more."""
    needs_namespaces()
    kept = sorted(number for numbers in ports.values() for number in numbers[:2])
    text = f"""{NAMESPACE}
open("/proc/sys/net/ipv4/ip_local_reserved_ports", "w").write("80,{",".join(map(str, kept))},90-91")
server = socket.create_server(where)
say(*(port(connect()) for _ in range(3)))
"""
    used = start(text).hear()
    if used == ["none"]:
        pytest.skip("no network namespace can be made here")
    assert set(used) == {numbers[2] for numbers in ports.values()}


def test_a_socket_keeps_to_its_device(start: Start, heard: FakeAgent) -> None:
    """By it, not by the routes of others, is the source address chosen."""
    needs_namespaces()
    text = f"""{NAMESPACE}
for number in (1, 2):
    run("ip", "link", "add", f"d{{number}}", "type", "veth", "peer", "name", f"p{{number}}")
    run("ip", "link", "set", f"p{{number}}", "up")
    run("ip", "address", "add", f"10.{{number}}.0.1/24", "dev", f"d{{number}}")
    run("ip", "link", "set", f"d{{number}}", "up")
    run("ip", "route", "add", "default", "dev", f"d{{number}}", "metric", str(number))
made = socket.socket()
made.setblocking(False)
made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"d2")
made.connect_ex(("10.9.0.1", 80))
say(made.getsockname()[0])
"""
    found = start(text).hear()
    if found == ["none"]:
        pytest.skip("no network namespace can be made here")
    assert found == ["10.2.0.1"]
    assert {request.nic for request in heard.of(Lanes)} == {"10.2.0.1"}  # type: ignore[union-attr]


def silent(agent: FakeAgent, request: Request) -> bytes | None:
    return frame(Welcome(1, "h0", 0)) if isinstance(request, Hello) else None


def garbage(agent: FakeAgent, request: Request) -> bytes | None:
    return b"\x00\x00\x00\x05\xff\xff\xff\xff\xff" if not isinstance(request, Hello) else well(agent, request)


def huge(agent: FakeAgent, request: Request) -> bytes | None:
    return b"\xff\xff\xff\xff" + bytes(100) if not isinstance(request, Hello) else well(agent, request)


def other_version(agent: FakeAgent, request: Request) -> bytes | None:
    return frame(Welcome(2, "h0", 0))


def refusing(agent: FakeAgent, request: Request) -> bytes | None:
    return well(agent, request) if isinstance(request, Hello) else frame(Refusal(request.handle, "unknown"))


def useless(agent: FakeAgent, request: Request) -> bytes | None:
    """Lanes without ports, or with ports that can't be bound to."""
    if isinstance(request, Hello):
        return well(agent, request)
    assert isinstance(request, Lanes)
    return frame(Grant(request.handle, "lanes", (Lane(0, 0, 0), Lane(1, 1, 0), Lane(65535, 65535, 0xFFFFF))))


def nobody(agent: FakeAgent, request: Request) -> bytes | None:
    return None


def for_another(agent: FakeAgent, request: Request) -> bytes | None:
    """Answers to what nobody asked, and the right one behind them."""
    if isinstance(request, Hello):
        return well(agent, request)
    wrong = frame(Grant(2**40, "lanes", (Lane(0, 5, 5),))) + frame(Refusal(0, "x" * 3000))
    return wrong + (well(agent, request) or b"")


@pytest.mark.parametrize(
    "answer", [silent, garbage, huge, other_version, refusing, useless, nobody, for_another, None]
)
def test_no_agent_can_harm_a_program(
    start: Start, socket_path: Path, answer: Callable[..., bytes] | None
) -> None:
    """Silent, nonsensical, of another version, or not there: all connections are made, data arrives."""
    text = "made = [connect() for _ in range(20)]; say(sum(port(one) > 0 for one in made))"
    with ExitStack() as stack:
        if answer is not None:
            stack.enter_context(agent(socket_path, {0: free_ports(1, 62_200 + AREA)}, answer))
        assert start(text, ARK_RUN_WAIT_MS="30").hear() == [20]


def test_an_agent_that_does_not_answer_is_asked_once(start: Start, socket_path: Path) -> None:
    """And what it was asked for is given back, in case that it answers later."""
    with agent(socket_path, {}, silent) as made:
        text = "made = [connect() for _ in range(50)]; say(1)"
        start(text, ARK_RUN_WAIT_MS="30").hear()
        made.wait_for(lambda now: len(now.heard) >= 2)
        asked, released = made.heard[:2]
        assert isinstance(asked, Lanes)
        assert released == Release(asked.handle)


def test_a_program_outlives_its_agents(
    start: Start, socket_path: Path, ports: dict[int, list[int]], listener: socket.socket
) -> None:
    """The agent dies while the program runs, and comes again: then new connections are steered again."""
    known = {number for numbers in ports.values() for number in numbers}
    text = f"""
first = connect(); say(port(first)); sys.stdin.readline()
second = connect(); say(port(second)); sys.stdin.readline()
for _ in range(3000):  # the library leaves an agent alone for a while that did not answer
    third = connect()
    if port(third) in {known}:
        break
    time.sleep(0.01)
say(port(third))
first.sendall(b"x"); say(1)
"""
    with agent(socket_path, ports):
        program = start(text)
        assert set(program.hear()) <= known
    program.go_on()
    assert not set(program.hear()) & known
    with agent(socket_path, ports):
        program.go_on()
        assert set(program.hear()) <= known
        assert program.hear() == [1]


def test_a_program_that_closes_all_descriptors_is_not_disturbed(start: Start, heard: FakeAgent) -> None:
    """As daemons do; then the number of our socket may be a file of the program's."""
    text = """
a = connect(); say(port(a)); sys.stdin.readline()
os.closerange(3, 4096)
files = [os.open("/dev/zero", os.O_RDWR) for _ in range(600)]
pair = socket.socketpair()
for number in range(700, 720):
    os.dup2(pair[0].fileno(), number)
b = connect(); say(port(b))
pair[1].setblocking(False)
try:
    say(len(pair[1].recv(100)))
except BlockingIOError:
    say(0)
os._exit(0)
"""
    program = start(text)
    program.hear()
    program.go_on()
    program.hear()
    assert program.hear() == [0]


def test_a_thousand_forks_among_threads(
    scratch: Path, sanitized: str, tmp_path: Path, listener: socket.socket
) -> None:
    """Threads connect and close while the process forks, and each child connects; under the sanitizers."""
    storm = compile_c(tmp_path / "storm", [PROGRAMS / "storm.c"], "-pthread")
    free = free_ports(48, 62_100 + AREA)
    with agent(tmp_path / "a.sock", {path: free[path::3] for path in range(3)}) as heard:
        done = subprocess.run(
            [str(storm), PEER, str(listener.getsockname()[1]), "1000", "4"],
            env=environment(Path(sanitized), tmp_path / "a.sock", ARK_RUN_SIZE="1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "made some, failed 0, bad children 0\n"), done.stderr[
            -2000:
        ]
        assert heard.connections > 1000
