"""What comparing the index with a version's actions finds."""

from dataclasses import dataclass, field
from typing import NamedTuple


class FileCounts(NamedTuple):
    """How many files a version added, and how many live ones it removed or replaced."""

    opened: int = 0
    closed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`counts` is what the actions opened, and what of that which they name was closed by
    their version; what the index says the version changed must be the same. `broken` is what the
    actions break of the protocol."""

    differences: tuple[str, ...]
    broken: tuple[str, ...] = ()
    counts: FileCounts = field(default_factory=FileCounts)
