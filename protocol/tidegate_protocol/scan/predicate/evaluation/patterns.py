"""LIKE, and `startswith`.

LIKE is matched segment by segment, without going back to an earlier one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tidegate_protocol.scan.predicate.evaluation.casts import as_text
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Condition,
    Node,
    Row,
    anything,
    condition,
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
)

_MAX_WORK = 1_000_000
"""Characters of a text times characters of a pattern; the rest is unknown."""
_MAX_STEPS = 20_000
"""Characters looked at one by one, where a piece of a LIKE has a `_`; beyond, it is unknown."""

_ANY_ONE = "_"
_ANY_MANY = "%"


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A LIKE pattern: pieces between `%`, each a sequence of characters and None for `_`."""

    pieces: tuple[tuple[str | None, ...], ...]

    @property
    def prefix(self) -> str:
        """What every text that matches begins with."""
        characters = []
        for character in self.pieces[0]:
            if character is None:
                break
            characters.append(character)
        return "".join(characters)

    @property
    def is_prefix(self) -> bool:
        """Whether every text that begins so matches."""
        return None not in self.pieces[0] and len(self.pieces) > 1 and not any(self.pieces[1:])

    def steps(self, text: str) -> int:
        """The most characters that `matches` looks at one by one: a piece with a `_` is tried at
        each place that no earlier piece has passed."""
        slow = max((len(piece) for piece in self.pieces if None in piece), default=0)
        return slow * (len(text) + len(self.pieces))

    def matches(self, text: str) -> bool:
        first, *rest = self.pieces
        if not rest:
            return len(text) == len(first) and _fits(first, text, 0)
        *middle, last = rest
        if len(text) < len(first) + len(last) or not _fits(first, text, 0):
            return False
        position = len(first)
        for piece in middle:
            found = _find(piece, text, position)
            if found < 0:
                return False
            position = found + len(piece)
        end = len(text) - len(last)
        return end >= position and _fits(last, text, end)


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
    # A constant pattern is compiled once, others while they stay the same.
    compiled = lru_cache(maxsize=16)(compile_)

    def truth(row: Row) -> Truth:
        found, source = text_of(row), pattern_of(row)
        if found is None or source is None:
            return NULL
        if not isinstance(source, str):
            return ANY
        matching = compiled(source)
        if isinstance(found, Range):
            return matching.of_range(found) | (NULL if found.nullable else 0)
        if not isinstance(found, str) or len(found) * len(source) > _MAX_WORK:
            return ANY
        return matching.of_text(found)

    return condition(truth, subject, sought)


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
    if pattern.steps(text) > _MAX_STEPS:
        return ANY
    return TRUE if pattern.matches(text) else FALSE


def _like_pattern(source: str, escape: str) -> LikePattern | None:
    """None for a pattern that Spark refuses: an escape before another character, or at the end."""
    pieces: list[tuple[str | None, ...]] = []
    piece: list[str | None] = []
    characters = iter(source)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in (_ANY_ONE, _ANY_MANY, escape):
                return None
            piece.append(escaped)
        elif character == _ANY_MANY:
            pieces.append(tuple(piece))
            piece = []
        else:
            piece.append(None if character == _ANY_ONE else character)
    pieces.append(tuple(piece))
    return LikePattern(tuple(pieces))


def _fits(piece: tuple[str | None, ...], text: str, start: int) -> bool:
    return all(
        character is None or character == text[start + offset]
        for offset, character in enumerate(piece)
    )


def _find(piece: tuple[str | None, ...], text: str, start: int) -> int:
    literal = "".join(character or "" for character in piece)
    if len(literal) == len(piece):
        return text.find(literal, start)
    for position in range(start, len(text) - len(piece) + 1):
        if _fits(piece, text, position):
            return position
    return -1


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
