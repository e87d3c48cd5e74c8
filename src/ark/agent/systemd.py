"""Tell systemd how we are: its notification protocol is one datagram to the socket in ``NOTIFY_SOCKET``.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

import os
import socket


def notify(state: str) -> None:
    """Send ``READY=1`` and the like; nothing happens where no systemd waits for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        try:
            sender.sendto(state.encode(), address)
        except OSError:
            return  # whoever asked has gone: nobody is left to tell


def watchdog_s() -> float | None:
    """How often to send ``WATCHDOG=1``: half of what systemd allows; None if it does not watch us."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    watched = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not limit_us.isdigit() or watched != str(os.getpid()) or int(limit_us) == 0:
        return None
    return int(limit_us) / 2e6
