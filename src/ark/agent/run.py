"""Run an agent as a process: signals, systemd, metrics, and the logs of what goes wrong inside."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable
from pathlib import Path

from ark.agent.config import AgentConfig, load_config
from ark.agent.daemon import Agent
from ark.agent.logs import LOGGER, log, start_logging
from ark.agent.metrics import MetricsServer
from ark.agent.status import table
from ark.agent.systemd import notify, watchdog_s
from ark.errors import ArkError

CAUSES_DUMPED = 50
"""Inputs of the controller that are logged with an internal error."""


async def serve(config: AgentConfig) -> None:
    """Run an agent until SIGTERM or SIGINT; SIGHUP reads the configuration again.

    Raises
    ------
    ConfigError
        If the state or the Unix socket can't be made.
    OSError
        If an address is not ours, or in use.
    """
    start_logging(config.log_level)
    agent = Agent(config)
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.set_exception_handler(_dump(agent))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, agent)
    metrics = None if config.metrics is None else MetricsServer(agent, config.metrics)
    await agent.start()
    _settle_memory()
    try:
        if metrics is not None:
            await metrics.start()
        notify(f"READY=1\nSTATUS={config.host.name}: {len(config.peers)} peers")
        await _watch(stopped)
    finally:
        notify("STOPPING=1")
        if metrics is not None:
            await metrics.stop()
        await agent.stop()


def _settle_memory() -> None:
    """Keep the garbage collector from walking through everything there is while a client waits.

    What is alive now (modules, fabric, routing) stays, so it is left out of all collections. The agent itself
    makes few cycles, and a full collection of a large table takes milliseconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def _watch(stopped: asyncio.Event) -> None:
    """Wait for the end, and tell systemd meanwhile that the loop still runs."""
    period_s = watchdog_s()
    while not stopped.is_set():
        try:
            async with asyncio.timeout(period_s):
                await stopped.wait()
        except TimeoutError:
            notify("WATCHDOG=1")


def _reload(agent: Agent) -> None:
    """Read the configuration again; a faulty one changes nothing."""
    notify("RELOADING=1")
    try:
        agent.reload(load_config(Path(agent.config.path)))
    except (ArkError, OSError) as error:
        log(logging.ERROR, "not reloaded", faults=str(error).splitlines())
    notify("READY=1")


def _dump(agent: Agent) -> Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]:
    """What is logged when something of ours breaks: the error, and what the controller heard before."""

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        recent = [occurrence._asdict() for occurrence in list(agent.controller.recent)[-CAUSES_DUMPED:]]
        LOGGER.error(
            "internal error",
            exc_info=error if isinstance(error, BaseException) else None,
            extra={
                "fields": {"detail": context.get("message"), "recent": recent, **table(agent, "summary", 0)}
            },
        )

    return handle
