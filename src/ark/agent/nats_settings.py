"""What an agent's configuration says about NATS, checked where it is the transport."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from ark.agent.schema import ControlTable
from ark.agent.text_file import exposed, read_text
from ark.errors import ConfigError
from ark.fabric.fault_list import FaultList
from ark.units import quoted


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """Where the servers are, and who we are to them."""

    servers: tuple[str, ...]
    prefix: str
    user: str | None = None
    password: str | None = None
    ca_file: Path | None = None


def nats_settings(control: ControlTable, config: Path) -> NatsSettings:
    """The settings in a configuration file, whose parts are looked at only where they are used.

    Raises
    ------
    ConfigError
        With all that is wrong, there and in the password's file.
    """
    table, folder = control.nats, config.parent
    password = _checked(control, config) if control.transport == "nats" else None
    ca_file = None if table.ca_file is None else folder / table.ca_file
    return NatsSettings(table.servers, table.prefix, table.user, password, ca_file)


def _checked(control: ControlTable, config: Path) -> str | None:
    """The password, if there is one."""
    table, faults, password = control.nats, FaultList(), None
    where = f"{config}: control.nats"
    if find_spec("nats") is None:
        faults.add(
            f"{config}: control.transport", "\"nats\" needs a package; run: pip install 'ark-kv[nats]'"
        )
    if not table.servers:
        faults.add(f"{where}.servers", "is empty; write at least one server")
    if not (table.prefix.isascii() and table.prefix.replace("-", "").isalnum()):
        faults.add(f"{where}.prefix", f"{quoted(table.prefix)} is no word of letters, digits and hyphens")
    for place, server in enumerate(table.servers):
        if not _is_server(server):
            faults.add(
                f"{where}.servers[{place}]",
                f'{quoted(server)} is no server; write it like "nats://10.0.0.1:4222" or "tls://…"',
            )
    if (table.user is None) != (table.password_file is None):
        faults.add(where, "user and password_file belong together; give both or none")
    elif table.password_file is not None:
        try:
            password = _password(config.parent / table.password_file)
        except ConfigError as error:
            faults.take(error)
    faults.raise_if_any()
    return password


def _password(path: Path) -> str:
    text = read_text(path, "a password")
    if faults := exposed(path):
        raise ConfigError(*faults)
    return text.strip()


def _is_server(text: str) -> bool:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return False
    plain = url.path in {"", "/"} and not url.query and url.username is None
    return url.scheme in {"nats", "tls"} and bool(url.hostname) and port != 0 and plain
