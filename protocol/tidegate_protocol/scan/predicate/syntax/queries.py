"""Queries inside a predicate: they are known to be queries, and nothing else is known of them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parser import Parser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.syntax.dialect import MAX_DEPTH
from tidegate_protocol.scan.predicate.syntax.steps import SteppingParser, Steps, TooManySteps

_SPARK = Spark()
_FIRST_WORDS = frozenset({"SELECT", "VALUES", "WITH"})
_GOING_ON = """
    cluster distribute except intersect limit minus offset order sort union window
"""
_WORDS_BEHIND = frozenset(_GOING_ON.upper().split())
"""With which a query in parentheses may go on."""
_ANY_QUERY = "(VALUES 1)"
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_LONGEST_TEXT = 64
"""Characters of a name or literal that the library sees: it looks at some again and again."""
_CHARACTERS_A_STEP = 8
"""Cut into tokens in the time that a step takes."""
_TIMES_ALONE = 2
"""As many steps as a query may an expression take that has to be read."""


class _Parser(SteppingParser):
    """All of Spark's grammar, without what takes the library more time than steps."""

    # What becomes of a call is not looked at, and some read a type by a parser of its own.
    FUNCTIONS: ClassVar[dict[str, Callable[..., object]]] = dict.fromkeys(
        SparkParser.FUNCTIONS, lambda args: exp.Anonymous(this="f", expressions=args)
    )

    def _match(
        self, token_type: TokenType, advance: bool = True, expression: exp.Expr | None = None
    ) -> bool:
        # It asks of a word that it may be each of many, before it goes to the next.
        self.steps.take()
        return super()._match(token_type, advance, expression)

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        name = self._curr
        if (
            allow_identifiers
            and name.token_type is TokenType.IDENTIFIER
            and not name.text.isalnum()
        ):
            # What is quoted would be read as a text of its own, by another parser.
            return None
        # Not Hive's, which goes through a type again for each type around it.
        return Parser._parse_types(self, check_func, schema, allow_identifiers, with_collation)

    def _parse_pipe_syntax_select(self, query: exp.Select) -> exp.Select:
        # The library copies the query that is piped, in some steps a word.
        self.steps.take(4 * self._index)
        return super()._parse_pipe_syntax_select(query)

    def _parse_pivot_in(self) -> exp.In:
        # Of the values of several FORs the library makes each combination.
        found = super()._parse_pivot_in()
        found.set("expressions", [exp.PivotAny()])
        return found

    def _pivot_column_names(self, aggregations: list[exp.Expr]) -> list[str]:
        return []


class Queries:
    """The subqueries and windows among the tokens of a predicate. `is_column` and `pause` are
    those of `lexing.tokenize`.

    All of them together may take as many steps as their text, and what is not read then may be
    what it looks like: it is taken for that, unless they `must_be_read`.
    """

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        is_column: Callable[[str], bool],
        pause: Callable[[], None],
        *,
        must_be_read: bool,
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._is_column = is_column
        self._pause = pause
        self._must_be_read = must_be_read
        self._steps = Steps.for_text(text)
        self._brackets: _Brackets | None = None
        self._subqueries: dict[int, int | None] = {}

    def subquery_end(self, index: int) -> int | None:
        """Where the parenthesis is closed that is opened here and holds a query and nothing
        else; None for any other token."""
        if self._kind(index) is not TokenType.L_PAREN:
            return None
        if index not in self._subqueries:
            self._find_subqueries(index)
        return self._subqueries[index]

    def _find_subqueries(self, first: int) -> None:
        """Which of the parentheses hold a query that are opened here in a row. None does unless
        the innermost one does, and those around a query hold it alone, or what it goes on with:
        each part of the text is read once."""
        start = first
        while self._kind(start) is TokenType.L_PAREN:
            self._subqueries[start] = None
            start += 1
        if self._kind(start) not in (TokenType.SELECT, TokenType.VAR):
            return
        word = self._tokens[start].text
        if word.upper() not in _FIRST_WORDS or self._is_column(word):
            return
        query, read_to = "", start - 1
        for index in range(start - 1, first - 1, -1):
            end = self._closing(index)
            if end is None:
                return
            if query and read_to + 1 < end and self._word(read_to + 1) not in _WORDS_BEHIND:
                return
            if (not query or read_to + 1 < end) and not self._holds(
                index, f"({query}{self._between(read_to, end)})"
            ):
                return
            self._subqueries[index] = end
            query, read_to = _ANY_QUERY, end

    def window_end(self, index: int) -> int | None:
        """Where the window of an OVER is closed; None for any other token. Raises
        `InvalidPredicate` for one that is none."""
        if (
            self._word(index) != "OVER"
            or self._kind(index - 1) is not TokenType.R_PAREN
            or self._kind(index + 1) is not TokenType.L_PAREN
        ):
            return None
        end = self._closing(index + 1)
        if end is None or not self._holds(
            index, f"SELECT f() OVER ({self._between(index + 1, end)})"
        ):
            raise InvalidPredicate(
                "expected a window after OVER", position=self._tokens[index].start
            )
        return end

    def _kind(self, index: int) -> TokenType | None:
        return self._tokens[index].token_type if 0 <= index < len(self._tokens) else None

    def _word(self, index: int) -> str:
        return self._tokens[index].text.upper()

    def _between(self, start: int, end: int) -> str:
        return self._text[self._tokens[start].end + 1 : self._tokens[end].start]

    def _closing(self, index: int) -> int | None:
        """Where the parenthesis is closed that is opened here. Raises `InvalidPredicate` where what
        is in it is nested too deeply, or holds a comment."""
        if self._brackets is None:
            self._brackets = _Brackets.among(self._tokens)
        end = self._brackets.closings.get(index)
        if end is None:
            return None
        comment, deep = self._brackets.comment, self._brackets.deep
        if comment is not None and comment <= end:
            refuse_comments(self._tokens[comment])
        if deep is not None and deep <= end:
            raise InvalidPredicate(
                f"the predicate is nested deeper than {MAX_DEPTH} levels",
                position=self._tokens[deep].start,
            )
        return end

    def _holds(self, index: int, text: str) -> bool:
        """Whether the text is a query."""
        try:
            return isinstance(_parsed(text, self._steps, self._pause), exp.Query | exp.Values)
        except TooManySteps:
            if not self._must_be_read:
                return True
            raise InvalidPredicate(
                "a query is too complex to be read", position=self._tokens[index].start
            ) from None


@dataclass(frozen=True, slots=True)
class _Brackets:
    """Which parentheses belong together, by their indices; the first token that is nested too
    deeply, and the first one with a comment."""

    closings: dict[int, int]
    deep: int | None
    comment: int | None

    @classmethod
    def among(cls, tokens: list[Token]) -> "_Brackets":
        closings: dict[int, int] = {}
        opened: list[int] = []
        depth = 0
        deep = comment = None
        for index, token in enumerate(tokens):
            kind = token.token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if deep is None and depth > MAX_DEPTH:
                deep = index
            if comment is None and has_comment(token):
                comment = index
            if kind is TokenType.L_PAREN:
                opened.append(index)
            elif kind is TokenType.R_PAREN and opened:
                closings[opened.pop()] = index
        return cls(closings, deep, comment)


def has_comment(token: Token) -> bool:
    return bool(token.comments) or token.token_type is TokenType.HINT


def refuse_comments(token: Token) -> None:
    """Raise `InvalidPredicate` where a comment stands: readers differ in where it ends."""
    if has_comment(token):
        raise InvalidPredicate("comments are not allowed in a predicate", position=token.start)


def is_expression(text: str, *, pause: Callable[[], None]) -> bool:
    """Whether Spark's whole grammar has the text for one expression, which that of predicates may
    not. Raises `InvalidPredicate` for one that is too complex to tell."""
    try:
        query = _parsed(f"SELECT ({text}\n)", Steps.for_text(text, times=_TIMES_ALONE), pause)
    except TooManySteps:
        raise InvalidPredicate("the expression is too complex to be read") from None
    parts = {} if query is None else {key: part for key, part in query.args.items() if part}
    found = [type(item) for item in parts.pop("expressions", [])]
    return isinstance(query, exp.Select) and found == [exp.Paren] and not parts


def _parsed(text: str, steps: Steps, pause: Callable[[], None]) -> exp.Expr | None:
    """What the text is as one statement; None for what is none. Raises `TooManySteps`."""
    steps.take(len(text) // _CHARACTERS_A_STEP)
    try:
        tokens = [_shortened(token) for token in _SPARK.tokenize(text)]
        if any(_is_open(*pair) for pair in pairwise(tokens)):
            return None
        trees = _Parser(_SPARK, steps, pause).parse(tokens, text)
    except TooManySteps:
        raise
    except RecursionError:
        raise InvalidPredicate("the predicate is nested too deeply") from None
    except Exception:
        # As in `parsing`: beside its own errors the library fails with whatever error the misread
        # tokens lead to.
        return None
    tree = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Expr) else None


def _is_open(token: Token, after: Token) -> bool:
    """Whether a list ends with a comma, which is nothing to the library in a call."""
    return token.token_type is TokenType.COMMA and after.token_type in _CLOSING


def _shortened(token: Token) -> Token:
    """The token without its comments, and with what is long cut off: it is the same kind of text.
    A number is a short one."""
    text = token.text
    if len(text) > _LONGEST_TEXT:
        text = "1" if token.token_type is TokenType.NUMBER else text[:_LONGEST_TEXT]
    return Token(token.token_type, text, token.line, token.col, token.start, token.end)
