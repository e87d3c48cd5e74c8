"""The daemon of one host: sockets, clocks, files and signals around ``ark.control``, which decides.

``ark agent`` runs it. Nothing here chooses a path; it tells the controller what happens, does what that
returns, and answers clients over a Unix socket. Imports asyncio, and of ARK only ``ark.control``,
``ark.fabric``, ``ark.client`` (for the messages of the local API) and what those import.
"""

from ark.agent.config import AgentConfig, load_config
from ark.agent.daemon import Agent

__all__ = ["Agent", "AgentConfig", "load_config"]
