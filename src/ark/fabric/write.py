"""Write any fabric as a fabric file of kind ``links``: the same network, part by part."""

import json
from collections.abc import Iterator, Mapping

from ark.fabric.hash_spec import HashSpec
from ark.fabric.parts import Link, Switch, hash_keys
from ark.fabric.topology import Fabric

_RATES = (("Tbit/s", 10**12), ("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1))
_TIMES = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))


def to_toml(fabric: Fabric) -> str:
    """The text of a fabric file; read back, it gives the same paths, numbers and digest."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(fabric: Fabric) -> Iterator[str]:
    common = fabric.switches[0].hash
    yield 'kind = "links"'
    yield _key("name", fabric.name)
    yield _key("prefill", fabric.prefill)
    yield _key("decode", fabric.decode)
    yield _key("hash", hash_keys(common))
    yield _key("host_hash", hash_keys(fabric.host_hash))
    for host in fabric.hosts:
        yield ""
        yield "[[host]]"
        yield _key("name", host.name)
        if len(host.nics) > 1:
            yield _key("nics", len(host.nics))
        yield _key("addresses", [nic.address for nic in host.nics])
    for switch in fabric.switches:
        yield from _switch(switch, common)
    down = {switch.name for switch in fabric.switches if not switch.up}
    for link in fabric.links[::2]:  # the odd ones are the same cables, the other way
        yield from _link(link, end_is_down=link.source in down or link.target in down)


def _switch(switch: Switch, common: HashSpec) -> Iterator[str]:
    yield ""
    yield "[[switch]]"
    yield _key("name", switch.name)
    yield _key("kind", switch.kind)
    yield _key("node_id", switch.node_id)
    if switch.hash != common:
        yield _key("hash", hash_keys(switch.hash))
    if switch.lag_hash != switch.hash:
        yield _key("lag_hash", hash_keys(switch.lag_hash))
    if switch.next_hop_order != "ascending":
        yield _key("next_hop_order", switch.next_hop_order)
    if not switch.up:
        yield _key("up", value=False)


def _link(link: Link, *, end_is_down: bool) -> Iterator[str]:
    yield ""
    yield "[[link]]"
    yield _key("between", [link.source, link.target])
    yield _key("rate", _quantity(link.rate_bps, _RATES))
    yield _key("delay", _quantity(link.delay_ns, _TIMES))
    if not link.up and not end_is_down:
        yield _key("up", value=False)
    if link.lag is not None:
        yield _key("lag", link.lag)


def _quantity(value: int, units: tuple[tuple[str, int], ...]) -> str:
    """The exact value in the largest unit in which it is whole."""
    unit, factor = next((unit, factor) for unit, factor in units if value % factor == 0)
    return f"{value // factor} {unit}" if value else f"0 {units[-1][0]}"


def _key(key: str, value: object) -> str:
    return f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    assert isinstance(value, str), f"a fabric file has no value like {value!r}"
    return json.dumps(value, ensure_ascii=True)
