"""Source ports that were learned on the live fabric, for the agent: what ``ark discover --out`` wrote."""

from pathlib import Path

from ark.agent.ports import Learned, Way
from ark.agent.text_file import read_text
from ark.discover.learned import LearnedMap, read_learned
from ark.discover.names import canonical
from ark.errors import ConfigError, Fault
from ark.fabric import Fabric, Nic, PathMap
from ark.units import quoted


def load_paths(path: Path, fabric: Fabric) -> dict[Way, Learned]:
    """The learned maps of a file; one that is in doubt now has no ports.

    Raises
    ------
    ConfigError
        With all faults: those of the file, NICs that the fabric lacks, paths that are none of its own.
    """
    file = read_learned(read_text(path, "a file of learned paths"), str(path))
    if file.numbering != "fabric":
        raise ConfigError(
            Fault(
                f"{path}: numbering",
                f"{quoted(file.numbering)} numbers paths otherwise than other hosts do; "
                "learn them with: ark discover … --fabric",
            )
        )
    nics = {nic.name: nic for nic in fabric.nics}
    found: dict[Way, Learned] = {}
    faults: list[Fault | str] = []
    for place, one in enumerate(file.maps):
        strangers = [name for name in (one.source, one.target) if name not in nics]
        if strangers:
            faults.extend(
                Fault(f"{path}: maps[{place}]", f"{quoted(name)} is no NIC of the fabric")
                for name in strangers
            )
            continue
        source, target = nics[one.source], nics[one.target]
        moved = _moved(one, source, target)
        if moved:
            faults.append(Fault(f"{path}: maps[{place}]", moved))
            continue
        known = {path.index for path in fabric.paths(source, target)}
        unknown = [one_path.path for one_path in one.paths if one_path.path not in known]
        if unknown:
            faults.append(
                Fault(
                    f"{path}: maps[{place}].paths",
                    f"{unknown[:20]} are no paths of the fabric from {one.source} to {one.target}",
                )
            )
            continue
        way = Way(source.index, target.index, one.dport, one.proto)
        found[way] = Learned(_complete(one, known), one.epoch)
    if faults:
        raise ConfigError(*faults)
    return found


def _moved(one: LearnedMap, source: Nic, target: Nic) -> str:
    """Why ports that were learned between other addresses say nothing; empty if the addresses are these."""
    for nic, address in ((source, one.source_address), (target, one.target_address)):
        if canonical(address) != canonical(nic.address):
            return f"was learned when {nic.name} had {address}; the fabric says {nic.address}: learn it anew"
    return ""


def _complete(one: LearnedMap, known: set[int]) -> PathMap:
    """The map with those paths too to which no port was learned: they exist, and have no port."""
    learned = one.path_map()
    paths = sorted(known)
    counts = dict(zip(learned.paths, learned.counts, strict=True))
    return PathMap(
        learned.source,
        learned.target,
        learned.dport,
        learned.proto,
        learned.influence,
        learned.reason,
        tuple(paths),
        tuple(counts.get(path, 0) for path in paths),
        tuple(learned.ports(path) for path in paths),
    )
