"""Spark's words and symbols, and predicate text cut into them.

Every word is cut out as the grammar's, whatever stands around it; `lexing` decides which role
each of them has.
"""

import re
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate

MAX_BYTES = 64 * 1024
MAX_DEPTH = 24
"""Nested parentheses, brackets and CASEs, and prefix operators in a row."""

WORDS = {
    "AND": TokenType.AND,
    "AS": TokenType.ALIAS,
    "BETWEEN": TokenType.BETWEEN,
    "CASE": TokenType.CASE,
    "COLLATE": TokenType.COLLATE,
    "DISTINCT": TokenType.DISTINCT,
    "DIV": TokenType.DIV,
    "ELSE": TokenType.ELSE,
    "END": TokenType.END,
    "ESCAPE": TokenType.ESCAPE,
    "FALSE": TokenType.FALSE,
    "FOR": TokenType.FOR,
    "FROM": TokenType.FROM,
    "ILIKE": TokenType.ILIKE,
    "IN": TokenType.IN,
    "INTERVAL": TokenType.INTERVAL,
    "IS": TokenType.IS,
    "LIKE": TokenType.LIKE,
    "NOT": TokenType.NOT,
    "NULL": TokenType.NULL,
    "OR": TokenType.OR,
    "REGEXP": TokenType.RLIKE,
    "RLIKE": TokenType.RLIKE,
    "SELECT": TokenType.SELECT,
    "THEN": TokenType.THEN,
    "TRUE": TokenType.TRUE,
    "UNKNOWN": TokenType.UNKNOWN,
    "WHEN": TokenType.WHEN,
}
_SYMBOLS = {
    "/*+": TokenType.HINT,
    "==": TokenType.EQ,
    "<=>": TokenType.NULLSAFE_EQ,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "<=": TokenType.LTE,
    "!>": TokenType.LTE,
    ">=": TokenType.GTE,
    "!<": TokenType.GTE,
    "||": TokenType.DPIPE,
    "::": TokenType.DCOLON,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
}

FOREIGN = frozenset(
    {
        TokenType.BACKSLASH,
        TokenType.BIT_STRING,
        TokenType.COLON,
        TokenType.HASH,
        TokenType.L_BRACE,
        TokenType.NATIONAL_RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.PARAMETER,
        TokenType.PLACEHOLDER,
        TokenType.R_BRACE,
    }
)
"""What no expression of Spark's has."""

_CLOSED = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*` | [^'"`]""", re.DOTALL | re.VERBOSE
)


class SparkExpressions(Spark):
    """Spark's lexical rules with the words of its expression grammar only."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**WORDS, **_SYMBOLS}
        COMMANDS: ClassVar[set[TokenType]] = set()
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [
            (f"{letter}{quote}", quote) for letter in "Xx" for quote in "'\""
        ]


DIALECT = SparkExpressions()


def scan(text: str) -> list[Token]:
    """The words, symbols and literals of a text. Raises `InvalidPredicate`."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidPredicate("the predicate is not valid Unicode", position=error.start) from None
    if size > MAX_BYTES:
        raise InvalidPredicate(f"the predicate is longer than {MAX_BYTES} bytes")
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError:
        raise InvalidPredicate(
            f"{excerpt(text)} is not a predicate: a quote is not closed, or a literal is malformed",
            position=_unclosed(text),
        ) from None
    if not tokens:
        raise InvalidPredicate("the predicate is empty")
    return tokens


def _unclosed(text: str) -> int | None:
    """Where the quote stands that nothing closes."""
    position = 0
    while position < len(text):
        match = _CLOSED.match(text, position)
        if match is None:
            return position
        position = match.end()
    return None
