"""What a bench is and what comes of it: ratios of things that were run in turns.

A bench never says "so many a second" alone. It runs the measured thing and what it is held
against one after the other, as often as `Scale.runs` says, and each turn gives one `Pair`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from benchmarks.rig.world import World

T = TypeVar("T")


class Sense(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a median has to reach: a number of which more, or less, is better."""

    sense: Sense
    value: float

    def reached_by(self, found: float) -> bool:
        return found >= self.value if self.sense is Sense.AT_LEAST else found <= self.value

    def __str__(self) -> str:
        return f"{self.sense.value} {self.value:g}"


def at_least(value: float) -> Floor:
    return Floor(sense=Sense.AT_LEAST, value=value)


def at_most(value: float) -> Floor:
    return Floor(sense=Sense.AT_MOST, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One turn: the measured thing and what it is held against, in the figure's unit."""

    measured: float
    against: float

    def __post_init__(self) -> None:
        if not (self.measured > 0 and self.against > 0):
            raise ValueError(f"expected two positive numbers, found {self}")

    @property
    def ratio(self) -> float:
        return self.measured / self.against


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A ratio with its spread. `at` is its place on a curve (a number of writers, a size), and
    `profile` says what a unit of work of the measured side took: name to number, with its unit
    in the name (`CPU µs a commit, service`)."""

    name: str
    unit: str
    pairs: tuple[Pair, ...]
    floor: Floor | None = None
    at: float | None = None
    profile: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError(f"expected at least one pair, found none: {self.name}")

    @property
    def ratios(self) -> list[float]:
        return [pair.ratio for pair in self.pairs]

    @property
    def ratio(self) -> float:
        """The median of the ratios, which is what the floor is about."""
        return median(self.ratios)

    @property
    def measured(self) -> float:
        return median(pair.measured for pair in self.pairs)

    @property
    def against(self) -> float:
        return median(pair.against for pair in self.pairs)

    @property
    def reached(self) -> bool | None:
        """Whether the floor is; None where there is none."""
        return None if self.floor is None else self.floor.reached_by(self.ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A floor on something that is no ratio: a peak of memory, a time, a count. One value a
    run; their median is what counts."""

    name: str
    unit: str
    values: tuple[float, ...]
    floor: Floor

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def reached(self) -> bool:
        return self.floor.reached_by(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a bench found. A note is a sentence or two of the report, below the figures."""

    figures: tuple[Figure, ...]
    limits: tuple[Limit, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much to do. `runs` is the number of turns of each figure, `held_s` how long a load that
    is to last lasts, where somebody says so."""

    quick: bool
    runs: int
    seed: int
    held_s: float | None = None

    def pick(self, *, quick: T, full: T) -> T:
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One row of the report. `measured` and `against` are what stands in its columns."""

    id: str
    title: str
    measured: str
    against: str
    run: "Callable[[World, Scale], Result]"
