"""Agents' files in a folder of a test: fabric, keys and configuration."""

from collections.abc import Mapping
from pathlib import Path

FABRIC = 'kind = "leaf-spine"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n{more}'
SECRET = "00112233445566778899aabbccddeeff"


def write_cluster(
    folder: Path, *, leaves: int = 2, spines: int = 4, hosts_per_leaf: int = 2, more: str = ""
) -> None:
    """Write the files that all hosts of a cluster have in common."""
    text = FABRIC.format(leaves=leaves, spines=spines, hosts=hosts_per_leaf, more=more)
    (folder / "fabric.toml").write_text(text)
    keys = folder / "cluster.key"
    keys.write_text(f"1 {SECRET}\n")
    keys.chmod(0o600)


def write_config(
    folder: Path,
    host: str,
    *,
    peers: Mapping[str, str] | None = None,
    bind: str = "127.0.0.1:0",
    more: str = "",
) -> Path:
    """Write the configuration of one host; ``more`` is TOML with tables of its own."""
    lines = [
        f'host = "{host}"',
        'fabric = "fabric.toml"',
        'key_file = "cluster.key"',
        f'state = "{host}.epoch"',
    ]
    top, _, tables = more.partition("[")
    lines += [top, "[peers]", *(f'{name} = "{address}"' for name, address in (peers or {}).items())]
    if "[control]" not in more:
        lines += ["[control]", f'bind = "{bind}"']
    if "[api]" not in more:
        lines += ["[api]", f'socket = "{host}.sock"']
    if tables:
        lines.append(f"[{tables}")
    path = folder / f"{host}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
