"""The known name that a wrong one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches

from ark.units import quoted

_NAMES_COMPARED = 1_000
"""How many known names are compared; comparing takes about 20 µs each, and this is only for a message."""

NAMES_LISTED = 6
"""Up to how many known names a message lists in full, where the caller says nothing else."""


def nearest(name: str, known: Iterable[str], kind: str, owner: str, *, listed: int = NAMES_LISTED) -> str:
    """A sentence that says that a name is unknown, and which known one is nearest.

    Parameters
    ----------
    name
        What was given, by somebody else: it is quoted and cut.
    known
        The names that exist.
    kind
        What the name should name: "NIC".
    owner
        Who has such names, with the verb: "leaf-spine 2x4x8 has".
    listed
        Up to how many known names are listed in full.
    """
    names = list(known)
    alike = [k for k in names if abs(len(k) - len(name)) <= 2 and k[:1] == name[:1]] or names
    close = get_close_matches(name[:100], alike[:_NAMES_COMPARED], n=1, cutoff=0.6)
    if close:
        return f'unknown {kind} {quoted(name)}; did you mean "{close[0]}"?'
    if not names:
        return f"unknown {kind} {quoted(name)}; {owner} none"
    if len(names) <= listed:
        return f"unknown {kind} {quoted(name)}; {owner} {', '.join(names)}"
    return f"unknown {kind} {quoted(name)}; {owner} {names[0]} … {names[-1]} ({len(names)})"
