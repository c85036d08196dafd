"""The parsing library, held to so many steps.

It tries a word in each of the roles that it may have, and reads what stands behind it again for
each: with some names in one another (`struct(struct(...))`) twice as often for each level more. Its
own limit, of nodes, counts what it makes, not what it tries.
"""

from collections.abc import Callable, Collection

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

_LEAST = 250
_OF_A_CHARACTER = 6
"""Some times what usual text takes."""


class TooManySteps(Exception):
    """The text takes more steps than it may. Nothing that the library catches."""


class Steps:
    """How many steps may still be taken, by one reader or by several in turn."""

    def __init__(self, left: int) -> None:
        self._left = left

    @classmethod
    def for_text(cls, text: str, *, times: int = 1) -> "Steps":
        """As many as reading the text may take, or so many times as many."""
        return cls(times * (_LEAST + _OF_A_CHARACTER * len(text)))

    def take(self, count: int = 1) -> None:
        """Raises `TooManySteps` where fewer are left, and from then on."""
        self._left -= count
        if self._left < 0:
            raise TooManySteps


class SteppingParser(SparkParser):
    """All of Spark's grammar. `pause` is called at each step."""

    def __init__(self, dialect: Dialect, steps: Steps, pause: Callable[[], None]) -> None:
        super().__init__(dialect=dialect, error_level=ErrorLevel.IMMEDIATE)
        self.steps = steps
        self.pause = pause
        self._operand: exp.Expr | None = None
        self._operand_size = 0
        self._operand_end = 0

    def _advance(self, times: int = 1) -> None:
        # To the next token, or back to one that is tried again.
        self.pause()
        self.steps.take()
        super()._advance(times)

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        outer = self._operand, self._operand_size, self._operand_end
        self._operand, self._operand_size, self._operand_end = this, 0, self._index
        try:
            return super()._parse_column_ops(this)
        finally:
            self._operand, self._operand_size, self._operand_end = outer

    def _parse_field(
        self,
        any_token: bool = False,
        tokens: Collection[TokenType] | None = None,
        anonymous_func: bool = False,
    ) -> exp.Expr | None:
        begun = self._index
        found = super()._parse_field(any_token, tokens, anonymous_func)
        if anonymous_func and self._operand and isinstance(found, exp.Func | exp.Window):
            # A call behind a dot: the library copies all before it, in two steps a word.
            if not self._operand_size:
                self._operand_size = sum(1 for _ in self._operand.walk())
            self.steps.take(2 * (self._operand_size + begun - self._operand_end))
        return found
