"""Whether all agents agree, and nothing is claimed any more, once transfers are over."""

import time
from typing import Final

from ark.errors import AgentUnavailable
from ark.lab.agents import Agents

SETTLE_S: Final = 10.0
"""How long the last news may take: over three leases, so that also those of a killed agent have ended."""

POLL_S: Final = 0.1


def settled(agents: Agents, *, wait_s: float = SETTLE_S) -> str:
    """Wait until no agent knows of a claim and all have the same table.

    Returns what is still claimed or differs after ``wait_s``; nothing if all is well.
    """
    end_s = time.monotonic() + wait_s
    while True:
        wrong = _difference(agents)
        if not wrong or time.monotonic() > end_s:
            return wrong
        time.sleep(POLL_S)


def _difference(agents: Agents) -> str:
    digests: dict[str, list[str]] = {}
    claimed = []
    for host in agents.running:
        try:
            table = agents.status(host, "digest")
        except AgentUnavailable:
            return f"the agent of {host} does not answer"
        digests.setdefault(str(table["digest"]), []).append(host)
        if table["reservations"]:
            claimed.append(f"{host} knows of {table['reservations']}")
    if claimed:
        return f"claims are left: {', '.join(claimed)}"
    if len(digests) > 1:
        return f"tables differ: {', '.join(' '.join(hosts) for hosts in digests.values())}"
    return ""
