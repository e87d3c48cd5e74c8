"""Schemes of host addresses: counted upwards from a first one, or those of the ns-3 RDMA simulators."""

from ipaddress import ip_address
from typing import Final

from ark.errors import ConfigError, Fault
from ark.units import quoted

AddressScheme = str
"""``"ns3"``, or the first address, IPv4 or IPv6, from which NICs are numbered upwards."""

NS3_NODES_MAX: Final = 65_536
"""The scheme of ns-3 has 256 x 256 nodes before it leaves 11.0.0.0/8's second octet."""


def scheme_addresses(scheme: AddressScheme, count: int) -> list[str]:
    """The addresses of NICs 0 to ``count`` - 1.

    Source: ns-3-alibabacloud, ``node_id_to_ip``: node i has
    0x0b000001 + ((i / 256) << 16) + ((i % 256) << 8).

    Raises
    ------
    ConfigError
        If the scheme is unknown, or runs out of addresses.
    """
    if scheme == "ns3":
        if count > NS3_NODES_MAX:
            raise ConfigError(
                Fault("addresses", f'"ns3" has addresses for {NS3_NODES_MAX:,} NICs, not {count:,}')
            )
        return [f"11.{node // 256}.{node % 256}.1" for node in range(count)]
    try:
        first = ip_address(scheme)
        _ = first + (count - 1)
    except ValueError:
        raise ConfigError(
            Fault(
                "addresses",
                f"{quoted(scheme)} is no first address for {count:,} NICs; "
                'write one like "10.0.0.1", or "ns3"',
            )
        ) from None
    return [str(first + offset) for offset in range(count)]
