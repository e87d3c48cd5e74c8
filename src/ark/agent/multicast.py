"""UDP multicast: one datagram reaches all agents of a group; what is meant for one goes to it alone."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Final

from ark.agent.addresses import SocketAddress, format_address
from ark.agent.transport import Receive, UdpTransport, kernel_drops
from ark.errors import ConfigError

HOPS_MAX: Final = 16
"""Routers that a datagram may cross: no datacenter has more tiers."""


class MulticastTransport(UdpTransport):
    """UDP to a group (IPv4), from a socket that also takes what is sent to us alone.

    Parameters
    ----------
    bind
        Our own address; its interface is the one on which the group is joined.
    group
        The group's address and port.

    Raises
    ------
    ConfigError
        If the group is no IPv4 multicast address.
    """

    def __init__(self, bind: SocketAddress, group: SocketAddress, *, receive_buffer_bytes: int) -> None:
        if ":" in group[0] or not 224 <= int(group[0].partition(".")[0]) <= 239:
            raise ConfigError(f"control.group {format_address(group)} is no IPv4 multicast address")
        super().__init__(bind, receive_buffer_bytes=receive_buffer_bytes)
        self._group = group
        own = self._socket
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(bind[0]))
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOPS_MAX)
        self._group_socket = _joined(bind, group, receive_buffer_bytes)

    def start(self, receive: Receive) -> None:
        """Begin to hand over datagrams of the group and our own."""
        super().start(receive)
        asyncio.get_running_loop().add_reader(self._group_socket, self._read, self._group_socket, receive)

    def set_peers(self, peers: Mapping[int, SocketAddress]) -> None:
        """Where each is spoken to alone; everybody is the group."""
        super().set_peers(peers)
        self._everybody = (self._group,)

    def drops(self) -> int:
        """Of both sockets."""
        return super().drops() + kernel_drops(self._group_socket)

    def close(self) -> None:
        """Leave the group, and stop."""
        if self._loop is not None:
            self._loop.remove_reader(self._group_socket)
        self._group_socket.close()
        super().close()


def _joined(bind: SocketAddress, group: SocketAddress, receive_buffer_bytes: int) -> socket.socket:
    """A socket that hears the group on the interface of our own address."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        made.bind(group)
        membership = struct.pack("4s4s", socket.inet_aton(group[0]), socket.inet_aton(bind[0]))
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        made.close()
        raise OSError(error.errno, error.strerror, f"multicast group {format_address(group)}") from None
    return made
