"""Queries inside a predicate: they are known to be queries, and nothing else is known of them."""

from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.syntax.dialect import MAX_DEPTH

_SPARK = Spark()
_FIRST_WORDS = frozenset({"SELECT", "VALUES", "WITH"})
_NODES_PER_TOKEN = 20
"""See `parsing`: a work limit for the library."""


class _Parser(SparkParser):
    """All of Spark's grammar."""

    pause: Callable[[], None]

    def _parse_unary(self) -> exp.Expr | None:
        self.pause()
        return super()._parse_unary()


class Queries:
    """The subqueries and windows among the tokens of a predicate. `is_column` and `pause` are
    those of `lexing.tokenize`."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        is_column: Callable[[str], bool],
        pause: Callable[[], None],
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._is_column = is_column
        self._pause = pause

    def subquery_end(self, index: int) -> int | None:
        """Where the parenthesis is closed that is opened here and holds a query and nothing
        else; None for any other token."""
        start = index
        while self._kind(start) is TokenType.L_PAREN and start <= index + MAX_DEPTH:
            start += 1
        if start == index or self._kind(start) not in (TokenType.SELECT, TokenType.VAR):
            return None
        word = self._tokens[start].text
        if word.upper() not in _FIRST_WORDS or self._is_column(word):
            return None
        end = self._closing(index)
        return end if end is not None and self._holds(index, end, "({})") else None

    def window_end(self, index: int) -> int | None:
        """Where the window of an OVER is closed; None for any other token. Raises
        `InvalidPredicate` for one that is none."""
        if (
            self._tokens[index].text.upper() != "OVER"
            or self._kind(index - 1) is not TokenType.R_PAREN
            or self._kind(index + 1) is not TokenType.L_PAREN
        ):
            return None
        end = self._closing(index + 1)
        if end is None or not self._holds(index + 1, end, "SELECT f() OVER ({})"):
            raise InvalidPredicate(
                "expected a window after OVER", position=self._tokens[index].start
            )
        return end

    def _kind(self, index: int) -> TokenType | None:
        return self._tokens[index].token_type if 0 <= index < len(self._tokens) else None

    def _closing(self, index: int) -> int | None:
        depth = 0
        for end in range(index, len(self._tokens)):
            refuse_comments(self._tokens[end])
            kind = self._tokens[end].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if depth == 0:
                return end
        return None

    def _holds(self, start: int, end: int, query: str) -> bool:
        """Whether what is between the two parentheses makes the text a query."""
        between = self._text[self._tokens[start].end + 1 : self._tokens[end].start]
        return _is_query(query.format(between), self._pause)


def refuse_comments(token: Token) -> None:
    """Raise `InvalidPredicate` where a comment stands: readers differ in where it ends."""
    if token.comments or token.token_type is TokenType.HINT:
        raise InvalidPredicate("comments are not allowed in a predicate", position=token.start)


def is_expression(text: str) -> bool:
    """Whether Spark's whole grammar has the text for one expression, which that of predicates may
    not. Raises `InvalidPredicate` for one that is nested too deeply."""
    query = _parsed(f"SELECT ({text}\n)", lambda: None)
    parts = {} if query is None else {key: part for key, part in query.args.items() if part}
    found = [type(item) for item in parts.pop("expressions", [])]
    return isinstance(query, exp.Select) and found == [exp.Paren] and not parts


def _is_query(text: str, pause: Callable[[], None]) -> bool:
    return isinstance(_parsed(text, pause), exp.Query | exp.Values)


def _parsed(text: str, pause: Callable[[], None]) -> exp.Expr | None:
    """What the text is as one statement; None for what is none."""
    try:
        tokens = _SPARK.tokenize(text)
        parser = _Parser(
            dialect=_SPARK,
            error_level=ErrorLevel.IMMEDIATE,
            max_nodes=_NODES_PER_TOKEN * (len(tokens) + 10),
        )
        parser.pause = pause
        trees = parser.parse(tokens, text)
    except RecursionError:
        raise InvalidPredicate("the predicate is nested too deeply") from None
    except Exception:
        # As in `parsing`: beside its own errors the library fails with whatever error the misread
        # tokens lead to.
        return None
    tree = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Expr) else None
