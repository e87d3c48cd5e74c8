"""Control addresses as text, ``10.0.0.1:7471`` or ``[fd00::1]:7471``: the form in which peers are bound."""

from ipaddress import ip_address
from typing import Final

from ark.errors import ConfigError
from ark.units import quoted

PORT: Final = 7471
"""Default UDP port of the control plane."""

SocketAddress = tuple[str, int]


def parse_address(text: str, *, port: int | None = None) -> SocketAddress:
    """IP address and port of a text; ``port`` stands in where the text has none.

    Raises
    ------
    ConfigError
        If it is no address, or has no port and needs one.
    """
    host, port_text = _split(text)
    try:
        address = str(ip_address(host))
    except ValueError:
        raise ConfigError(f'{quoted(text)} is no address; write it like "10.0.0.1:{PORT}"') from None
    if not port_text and port is not None:
        return address, port
    if not (port_text.isascii() and port_text.isdigit() and 0 <= int(port_text[:6]) <= 65_535):
        raise ConfigError(f'{quoted(text)} needs a port, 0 to 65535; write it like "10.0.0.1:{PORT}"')
    return address, int(port_text)


def format_address(address: SocketAddress) -> str:
    """An address and port in the one form in which they are compared."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port
