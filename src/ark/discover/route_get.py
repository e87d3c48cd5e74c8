"""Ask a Linux leaf itself: ``ip route get`` says where a packet that comes in at an interface would go.

Source of a trap: Linux 6.12 and 6.18, net/ipv6/route.c. Under ``fib_multipath_hash_policy`` 3 a look-up
without a packet leaves out the last step of the hash for IPv6, so its answer is not where packets go.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ark.discover.chains import finding_of
from ark.discover.numbering import Hops
from ark.discover.probe import Flow
from ark.discover.search import Finding
from ark.errors import ConfigError
from ark.fabric.five_tuple import TCP
from ark.units import quoted

_INTERFACE: Final = re.compile(r"[^\s/]{1,15}")
_ANSWER: Final = re.compile(
    r"^(?P<dst>[0-9a-fA-F.:]+) from \S+(?: via (?:inet6? )?(?P<via>[0-9a-fA-F.:]+))? dev (?P<dev>\S+)",
    re.MULTILINE,
)


def questions(flow: Flow, ports: Iterable[int], *, interface: str) -> str:
    """Lines for ``ip -batch -``, one a port.

    Raises
    ------
    ConfigError
        If the interface has no possible name.
    """
    if not _INTERFACE.fullmatch(interface):
        raise ConfigError(f"--iif: {quoted(interface)} is no name of an interface")
    proto = "tcp" if flow.proto == TCP else "udp"
    return "".join(
        f"route get {flow.dst} from {flow.src} iif {interface} "
        f"ipproto {proto} sport {port} dport {flow.dport}\n"
        for port in ports
    )


def read_answers(
    printed: str,
    flow: Flow,
    ports: Sequence[int],
    *,
    switch: str | None,
    names: Mapping[str, str],
) -> Finding:
    """The finding out of what ``ip`` printed.

    Parameters
    ----------
    printed
        Its output for ``questions`` with the same flow and ports.
    flow, ports
        What was asked.
    switch
        The name of the switch that was asked, if it has one.
    names
        The switch that an address belongs to; other gateways are named by their address, and routes without
        a gateway by their interface.

    Raises
    ------
    ConfigError
        If there are not as many answers as questions.
    """
    answers = [match["via"] or match["dev"] for match in _ANSWER.finditer(printed)]
    if len(answers) != len(ports):
        raise ConfigError(
            f"ip route get answered {len(answers)} of {len(ports)} questions; is {flow.src} reached over "
            "that interface, and is forwarding on?"
        )
    chains: dict[int, Hops] = {
        port: (switch, names.get(answer, answer)) for port, answer in zip(ports, answers, strict=True)
    }
    return finding_of(flow, chains)
