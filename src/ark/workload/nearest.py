"""The known name that a mistyped one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """`` (did you mean "llama-3-8b"?)`` for the nearest known name, or nothing where none is near."""
    close = get_close_matches(name[:80], list(known), n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""
