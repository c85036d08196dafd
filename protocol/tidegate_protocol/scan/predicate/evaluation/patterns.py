"""LIKE, and `startswith`.

LIKE is matched segment by segment, without going back to an earlier one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tidegate_protocol.scan.predicate.evaluation.casts import as_text
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Condition,
    Node,
    Row,
    anything,
    condition,
    known,
    to_scalar,
)
from tidegate_protocol.scan.predicate.evaluation.values import (
    ANY,
    FALSE,
    NULL,
    TRUE,
    Plain,
    Range,
    Truth,
    Value,
)

_MAX_WORK = 1_000_000
"""Characters of a text times characters of a pattern; the rest is unknown."""
_MAX_STEPS = 500
"""Times that a LIKE looks again for runs of characters that belong together, with `_` in between;
beyond, it is unknown."""
_MAX_MADE = 256
"""Characters of a pattern that is computed for each row; a longer one is unknown."""

_ANY_ONE = "_"
_ANY_MANY = "%"


@dataclass(frozen=True, slots=True)
class _Piece:
    """So many characters in a row: `runs` are those that are given, each with its place; at the
    others any may stand."""

    length: int
    runs: tuple[tuple[int, str], ...]

    def fits(self, text: str, start: int) -> bool:
        """Whether the text has it at this place; so many characters are there."""
        return all(text.startswith(run, start + place) for place, run in self.runs)

    def find(self, text: str, start: int, steps: int) -> tuple[int, int]:
        """The first place from `start` on where the text has it, -1 for none; and what is left of
        the steps, less than none where they were too few to tell."""
        last = len(text) - self.length
        while start <= last:
            position = start
            for place, run in self.runs:
                found = text.find(run, position + place)
                if found < 0:
                    return -1, steps
                position = found - place
            if position == start:
                return start, steps
            # Each run is at this place or behind it; one alone is there.
            start = position
            steps -= len(self.runs) - 1
            if steps < 0:
                break
        return -1, steps


_NOTHING = _Piece(0, ())


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A LIKE pattern: what a text begins with, what comes somewhere after that, one after the
    other, and what it ends with. Without a `%`, what it begins with is all, and `last` is None."""

    first: _Piece
    middle: tuple[_Piece, ...]
    last: _Piece | None

    @property
    def prefix(self) -> str:
        """What every text that matches begins with."""
        return next((run for place, run in self.first.runs if place == 0), "")

    @property
    def is_prefix(self) -> bool:
        """Whether every text that begins so matches."""
        rest = self.last is not None and not self.middle and not self.last.length
        return rest and len(self.prefix) == self.first.length

    def matches(self, text: str) -> bool | None:
        """None where it takes too long to tell."""
        first, last = self.first, self.last
        if last is None:
            return len(text) == first.length and first.fits(text, 0)
        end = len(text) - last.length
        position = first.length
        if end < position or not first.fits(text, 0):
            return False
        steps = _MAX_STEPS
        for piece in self.middle:
            found, steps = piece.find(text, position, steps)
            if found < 0:
                return None if steps < 0 else False
            position = found + piece.length
        return end >= position and last.fits(text, end)


def like(text: Node, pattern: Node, escape: str = "\\") -> Condition:
    """`text LIKE pattern ESCAPE escape`."""
    return _match(text, pattern, lambda source: _like_matcher(source, escape))


def starts_with(text: Node, prefix: Node) -> Condition:
    return _match(text, prefix, _prefix_matcher)


@dataclass(frozen=True, slots=True)
class _Matching:
    """`of_text` evaluates a known text, `of_range` the texts of a range."""

    of_text: Callable[[str], Truth]
    of_range: Callable[[Range], Truth]


def _match(text: Node, pattern: Node, compile_: Callable[[str], _Matching]) -> Condition:
    subject, sought = as_text(to_scalar(text)), as_text(to_scalar(pattern))
    if subject is None or sought is None:
        return anything([text, pattern])
    text_of, pattern_of = subject.run, sought.run
    constant = None if sought.columns or sought.foreign else known(sought)
    if isinstance(constant, str):
        matching = compile_(constant)
        return condition(lambda row: _judged(text_of(row), constant, matching), subject, sought)

    def truth(row: Row) -> Truth:
        found, source = text_of(row), pattern_of(row)
        if found is None or source is None:
            return NULL
        if not isinstance(source, str) or len(source) > _MAX_MADE:
            return ANY
        return _judged(found, source, compile_(source))

    return condition(truth, subject, sought)


def _judged(found: Value, source: str, matching: _Matching) -> Truth:
    if found is None:
        return NULL
    if isinstance(found, Range):
        return matching.of_range(found) | (NULL if found.nullable else 0)
    if not isinstance(found, str) or len(found) * len(source) > _MAX_WORK:
        return ANY
    return matching.of_text(found)


_UNDECIDED = _Matching(lambda _: ANY, lambda _: ANY)


def _prefix_matcher(prefix: str) -> _Matching:
    return _Matching(
        lambda text: TRUE if text.startswith(prefix) else FALSE,
        lambda texts: _range_with_prefix(texts, prefix, suffices=True),
    )


def _like_matcher(source: str, escape: str) -> _Matching:
    pattern = _like_pattern(source, escape)
    if pattern is None:
        return _UNDECIDED
    return _Matching(
        lambda text: _matches(pattern, text),
        lambda texts: _range_with_prefix(texts, pattern.prefix, suffices=pattern.is_prefix),
    )


def _matches(pattern: LikePattern, text: str) -> Truth:
    found = pattern.matches(text)
    if found is None:
        return ANY
    return TRUE if found else FALSE


def _like_pattern(source: str, escape: str) -> LikePattern | None:
    """None for a pattern that Spark refuses: an escape before another character, or at the end."""
    pieces: list[_Piece] = []
    piece: list[str | None] = []
    characters = iter(source)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in (_ANY_ONE, _ANY_MANY, escape):
                return None
            piece.append(escaped)
        elif character == _ANY_MANY:
            pieces.append(_piece(piece))
            piece = []
        else:
            piece.append(None if character == _ANY_ONE else character)
    if not pieces:
        return LikePattern(_piece(piece), (), None)
    first, *middle = pieces
    return LikePattern(first, tuple(each for each in middle if each.length), _piece(piece))


def _piece(characters: Sequence[str | None]) -> _Piece:
    """None stands for any character."""
    if not characters:
        return _NOTHING
    runs: list[tuple[int, str]] = []
    place = 0
    for is_any, run in groupby(characters, key=lambda character: character is None):
        found = [character or "" for character in run]
        if not is_any:
            runs.append((place, "".join(found)))
        place += len(found)
    return _Piece(place, tuple(runs))


def _range_with_prefix(texts: Range, prefix: str, *, suffices: bool) -> Truth:
    """What "begins with" may be over a range of texts, in order of code points. `suffices` says
    that beginning so is all there is to the predicate."""
    low, high = texts.low, texts.high
    outside = (isinstance(high, str) and high < prefix) or (
        isinstance(low, str) and low > prefix and not low.startswith(prefix)
    )
    if outside:
        return FALSE
    inside = _begins(low, prefix) and _begins(high, prefix)
    return TRUE if inside and suffices else TRUE | FALSE


def _begins(bound: Plain | None, prefix: str) -> bool:
    return isinstance(bound, str) and bound.startswith(prefix)
