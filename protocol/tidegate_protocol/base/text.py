"""Bounded excerpts of untrusted text for error messages."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

EXCERPT = 120
SOME = 20


def excerpt(value: bytes | str) -> str:
    """At most `EXCERPT` characters of the value, escaped so that it stays on one line."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return repr(text if len(text) <= EXCERPT else text[:EXCERPT] + "…")


def some(names: Collection[str]) -> str:
    """The names as a sorted list; of more than `SOME` the first ones and how many there are."""
    if len(names) <= SOME:
        return excerpt_each(sorted(names))
    return f"{excerpt_each(sorted(islice(names, SOME)))} and {len(names) - SOME} more"


def excerpt_each(names: Collection[str]) -> str:
    """A list of excerpts."""
    return f"[{', '.join(map(excerpt, names))}]"


def meant(name: str, known: Iterable[str]) -> str:
    """A name that is none of those known, with the nearest of them in any case."""
    lowered = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), lowered, n=1)
    return f"{name} (is {lowered[nearest[0]]} meant?)" if nearest else name
