"""Which hosts prefill and which decode, as ``--prefill`` and ``--decode`` say it."""

from ark.cli.flags import host_names
from ark.errors import ConfigError
from ark.fabric import Fabric


def with_roles(fabric: Fabric, prefill: str | None, decode: str | None) -> Fabric:
    """The same fabric with its roles as in the flags; where one is given, the rest has the other.

    Raises
    ------
    ConfigError
        If a host is not there or in both, one side is empty, or no path joins two hosts of both sides.
    """
    prefills = host_names("--prefill", prefill, fabric)
    decodes = host_names("--decode", decode, fabric)
    if prefills is None and decodes is None:
        return fabric
    every = [host.name for host in fabric.hosts]
    if prefills is None:
        prefills = tuple(name for name in every if name not in set(decodes or ()))
    if decodes is None:
        decodes = tuple(name for name in every if name not in set(prefills))
    _check_sides(fabric, prefills, decodes)
    return fabric.changed(prefill=prefills, decode=decodes)


def _check_sides(fabric: Fabric, prefills: tuple[str, ...], decodes: tuple[str, ...]) -> None:
    both = [name for name in prefills if name in set(decodes)]
    if both:
        more = f" and {len(both) - 1} more" if len(both) > 1 else ""
        raise ConfigError(f"--prefill, --decode: {both[0]}{more} stands in both; a host has one role")
    for side, hosts in (("--prefill", prefills), ("--decode", decodes)):
        if not hosts:
            raise ConfigError(f"{side}: no host is left for it; give fewer to the other side")
    sources, targets = _hung_on(fabric, prefills), _hung_on(fabric, decodes)
    for source, source_host in sources.items():
        for target, target_host in targets.items():
            if source != target and not fabric.up_paths(source, target):
                raise ConfigError(f"--prefill, --decode: no path is up from {source_host} to {target_host}")


def _hung_on(fabric: Fabric, hosts: tuple[str, ...]) -> dict[int, str]:
    """The attachments of some hosts, each with a host that hangs on it."""
    return {nic.attachment: name for name in hosts for nic in fabric.host(name).nics}
