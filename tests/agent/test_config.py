import os
from pathlib import Path

import pytest
from tests.agent.agents import SECRET, write_cluster, write_config

from ark.agent.addresses import format_address, parse_address
from ark.agent.config import load_config
from ark.agent.epoch_file import read_epoch
from ark.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cluster(tmp_path)
    return tmp_path


def faults(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value).replace(f"{path.parent}/", "").splitlines()


def write(folder: Path, text: str) -> Path:
    path = folder / "agent.toml"
    path.write_text(text)
    return path


def test_two_keys_and_a_host_are_all_that_a_configuration_needs(folder: Path) -> None:
    config = load_config(write(folder, 'host = "h0"\nfabric = "fabric.toml"\nkey_file = "cluster.key"\n'))
    assert config.bind == ("10.0.0.1", 7471)
    assert config.peers == {"h1": ("10.0.0.2", 7471), "h2": ("10.0.0.3", 7471), "h3": ("10.0.0.4", 7471)}
    assert (config.lease_ns, config.heartbeat_ns, config.batch_ns) == (3_000_000_000, 250_000_000, 1_000_000)
    assert (config.policy.line_rate_bps, config.policy.hold_ns) == (100_000_000_000, 1_000_000)
    assert config.policy.min_bytes is None
    assert str(config.socket) == "/run/ark/agent.sock"
    assert config.warnings == []


def test_given_peers_are_the_peers_and_the_own_name_among_them_is_none(folder: Path) -> None:
    config = load_config(write_config(folder, "h0", peers={"h0": "127.0.0.1:1", "h2": "127.0.0.1:2"}))
    assert config.peers == {"h2": ("127.0.0.1", 2)}
    assert config.socket == folder / "h0.sock"


def test_all_faults_of_all_files_come_at_once(folder: Path) -> None:
    (folder / "cluster.key").write_text("1 xyz\n")
    path = write(
        folder,
        'host = "h9"\nfabric = "fabric.toml"\nkey_file = "cluster.key"\ndryrun = true\n'
        '[control]\nlease = "1"\nheartbeat = "2s"\ntransport = "udq"\n'
        '[policy]\nmin_bytes = "16"\n[metrics]\nlisten = "localhost"\n[api]\ngroup = "no-such-group"\n',
    )
    assert faults(path) == [
        'agent.toml: dryrun: unknown key "dryrun"; did you mean "dry_run"?',
        'agent.toml: control.lease: "1" has no unit; write "1us"',
        (
            'agent.toml: control.transport: "udq" is not allowed; '
            'allowed are multicast, nats, udp; did you mean "udp"?'
        ),
        "cluster.key:1: has a secret that is not hexadecimal; make one by: openssl rand -hex 32",
        'agent.toml: metrics.listen: "localhost" is no address; write it like "10.0.0.1:7471"',
        'agent.toml: api.group: "no-such-group" is no group of this machine; run: groupadd',
        (
            "agent.toml: control.lease: 3s with a heartbeat every 2s: a lease lasts at least 3 heartbeats, "
            "and a heartbeat at least 1ms"
        ),
        'agent.toml: host: unknown host "h9"; leaf-spine 2x4x2 has h0, h1, h2, h3',
    ]


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        ({"h7": "127.0.0.1:1"}, 'peers.h7: unknown host "h7"; leaf-spine 2x4x2 has h0, h1, h2, h3'),
        ({"h1": "h1:7471"}, 'peers.h1: "h1:7471" is no address; write it like "10.0.0.1:7471"'),
        (
            {"h1": "127.0.0.1:5", "h2": "127.0.0.1:5"},
            'peers.h2: "127.0.0.1:5" is the address of h1 too; each host has its own',
        ),
    ],
)
def test_faulty_peers_are_named(folder: Path, peers: dict[str, str], expected: str) -> None:
    assert faults(write_config(folder, "h0", peers=peers)) == [f"h0.toml: {expected}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "cluster.key: has 0 keys; write one, or two during a rotation"),
        (f"1 {SECRET}\n" * 3, "cluster.key: has 3 keys; write one, or two during a rotation"),
        (f"1 {SECRET}\n" * 2, "cluster.key: both keys have the id 1; give the new key another id"),
        (f"300 {SECRET}", "cluster.key:1: key id 300 is not in 0..127"),
        ("1 0011", "cluster.key:1: key 1 has 2 bytes; 16 to 64 are allowed"),
        (SECRET, "cluster.key:1: is no key; write its id (0 to 127) and its secret in hexadecimal digits"),
    ],
)
def test_faulty_keys_are_named_and_never_shown(folder: Path, text: str, expected: str) -> None:
    (folder / "cluster.key").write_text(text)
    assert faults(write_config(folder, "h0")) == [expected]


def test_two_keys_are_a_rotation(folder: Path) -> None:
    (folder / "cluster.key").write_text(f"# new\n2 {SECRET}01\n\n1 {SECRET} # old\n")
    keys = load_config(write_config(folder, "h0")).keys
    assert (keys.signing.id, keys.accepted and keys.accepted.id) == (2, 1)


def test_a_key_that_everybody_may_read_is_refused(folder: Path) -> None:
    (folder / "cluster.key").chmod(0o644)
    assert faults(write_config(folder, "h0")) == [
        "cluster.key: can be read by every user of this machine; run: chmod o-rw"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a b",
            (
                "agent.toml: is no valid TOML: "
                "Expected '=' after a key in a key/value pair (at line 1, column 3)"
            ),
        ),
        ("a = " + "[" * 5000, "agent.toml: has a value nested too deep or a number too long"),
        ('host = "h0"', "agent.toml: fabric: is missing; it has no default"),
    ],
)
def test_what_is_no_configuration_is_one_clear_line(folder: Path, text: str, expected: str) -> None:
    assert faults(write(folder, text))[0] == expected


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "fabric.toml").unlink()
    (folder / "cluster.key").write_bytes(b"\xff\xfe")
    assert faults(write_config(folder, "h0")) == [
        "cluster.key: can't be read as a key file: it is no UTF-8 text",
        "fabric.toml: can't be read as a fabric file: No such file or directory",
    ]
    assert faults(folder / "none.toml") == [
        "none.toml: can't be read as an agent's configuration: No such file or directory"
    ]


@pytest.mark.parametrize("key", ["fabric", "key_file", "paths"])
def test_a_pipe_without_a_writer_is_not_waited_for(folder: Path, key: str) -> None:
    """An agent that reads its configuration again would serve nobody any more."""
    os.mkfifo(folder / "pipe")
    path = write_config(folder, "h0", more='paths = "paths.json"\n')
    lines = [
        f'{key} = "pipe"' if line.startswith(f"{key} =") else line for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="pipe: is no regular file"):
        load_config(path)
    with pytest.raises(ConfigError, match="pipe: is no regular file; an agent's configuration is one"):
        load_config(folder / "pipe")


@pytest.mark.parametrize(
    ("text", "epoch"),
    [("12\n", 12), ("", None), ("x", None), ("-3", None), ("9" * 30, None), ("\udcff", None)],
)
def test_a_spoilt_epoch_is_none(tmp_path: Path, text: str, epoch: int | None) -> None:
    (tmp_path / "epoch").write_text(text, errors="surrogateescape")
    assert read_epoch(tmp_path / "epoch") == epoch


def test_an_epoch_is_not_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "epoch")
    with pytest.raises(ConfigError, match="epoch: is no regular file"):
        read_epoch(tmp_path / "epoch")


def test_many_peers_by_unicast_and_dry_run_are_warned_of(tmp_path: Path) -> None:
    write_cluster(tmp_path, hosts_per_leaf=150)
    path = write(tmp_path, 'host = "h0"\nfabric = "fabric.toml"\nkey_file = "cluster.key"\ndry_run = true\n')
    assert [warning.partition(":")[0] for warning in load_config(path).warnings] == ["299 peers", "dry run"]


@pytest.mark.parametrize("text", ["10.0.0.1:7471", "[fd00::1]:7471", "0.0.0.0:0"])
def test_addresses_have_one_form(text: str) -> None:
    assert format_address(parse_address(text)) == text


@pytest.mark.parametrize("text", ["fd00::1", "[fd00::1]"])
def test_a_port_may_have_a_default(text: str) -> None:
    assert parse_address(text, port=7471) == ("fd00::1", 7471)


@pytest.mark.parametrize(
    "text", ["", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:65536", "[::1]7x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write it like"):
        parse_address(text)


PLAIN = 'host = "h0"\nfabric = "fabric.toml"\nkey_file = "cluster.key"\n'
NATS = f'{PLAIN}[control]\ntransport = "nats"\n[control.nats]\n'


def test_nats_needs_servers_and_takes_a_password_from_a_file_of_its_own(folder: Path) -> None:
    (folder / "password").write_text("secret\n")
    (folder / "password").chmod(0o600)
    nats = load_config(
        write(
            folder,
            f'{NATS}servers = ["nats://10.0.0.9:4222", "tls://n2"]\nprefix = "blue"\nuser = "h0"\n'
            'password_file = "password"\nca_file = "ca.pem"\n',
        )
    ).nats
    assert (nats.servers, nats.prefix) == (("nats://10.0.0.9:4222", "tls://n2"), "blue")
    assert (nats.user, nats.password, nats.ca_file) == ("h0", "secret", folder / "ca.pem")


def test_what_is_wrong_about_nats_is_said_where_it_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "password").write_text("secret\n")
    (folder / "password").chmod(0o644)
    broken = (
        'servers = ["nats://u:p@n1", "http://n2", "nats://n3:99999"]\nprefix = "a.b"\nuser = "h0"\n'
        'password_file = "password"\n'
    )
    monkeypatch.setattr("ark.agent.nats_settings.find_spec", lambda _: None)
    assert faults(write(folder, NATS + broken)) == [
        "agent.toml: control.transport: \"nats\" needs a package; run: pip install 'ark-kv[nats]'",
        'agent.toml: control.nats.prefix: "a.b" is no word of letters, digits and hyphens',
        *(
            f'agent.toml: control.nats.servers[{place}]: "{server}" is no server; '
            'write it like "nats://10.0.0.1:4222" or "tls://…"'
            for place, server in enumerate(("nats://u:p@n1", "http://n2", "nats://n3:99999"))
        ),
        "password: can be read by every user of this machine; run: chmod o-rw",
    ]
    monkeypatch.undo()
    assert faults(write(folder, f'{NATS}servers = []\nuser = "h0"\n')) == [
        "agent.toml: control.nats.servers: is empty; write at least one server",
        "agent.toml: control.nats: user and password_file belong together; give both or none",
    ]
    assert faults(write(folder, f'{NATS}user = "h0"\npassword_file = "none"\n')) == [
        "none: can't be read as a password: No such file or directory"
    ]
    load_config(write(folder, NATS.replace('transport = "nats"', "") + broken))
