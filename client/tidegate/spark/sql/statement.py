"""A statement and where in it a reader stands: words, names, literals, and the text of clauses."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.scan.predicate.syntax.dialect import DIALECT

T = TypeVar("T")

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}
_COMMENT = re.compile(r"--[^\r\n]*|/\*.*\*/", re.DOTALL)
"""One, or several in `/*`, where nothing but blanks stands between."""
_NO_COMMENT = re.compile(r"/\*\+|--[^\r\n]*\\\n")
"""To Spark a hint, and a comment that goes on in the next line."""
_LITERALS = {
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.HEX_STRING,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
}


class Statement:
    """The tokens of one statement, read from left to right; a semicolon may end it.

    What is not as expected raises `InvalidCommand` with Spark's class for it, PARSE_SYNTAX_ERROR.
    """

    def __init__(self, text: str) -> None:
        try:
            self._tokens = list(DIALECT.tokenize(text))
        except TokenError as error:
            raise InvalidCommand(
                "PARSE_SYNTAX_ERROR", f"a quote is not closed, or a literal is malformed: {error}"
            ) from None
        self._text = text
        self._at = 0
        self._check_gaps()
        if self._tokens and self._tokens[-1].token_type is TokenType.SEMICOLON:
            self._tokens.pop()

    @property
    def text(self) -> str:
        """All of it, without the semicolon."""
        return self._text[: self._tokens[-1].end + 1] if self._tokens else ""

    def sees(self, *words: str) -> bool:
        """Whether these words are next."""
        found = self._tokens[self._at : self._at + len(words)]
        return len(found) == len(words) and all(map(_is_word, found, words))

    def sees_inside(self, *words: str) -> bool:
        """Whether one of these words is next, or is so behind opening parentheses."""
        at = self._at
        while at < len(self._tokens) and self._tokens[at].token_type is TokenType.L_PAREN:
            at += 1
        return at < len(self._tokens) and any(_is_word(self._tokens[at], word) for word in words)

    def takes(self, *words: str) -> bool:
        """Whether these words were next, which are passed then."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Pass these words."""
        if not self.takes(*words):
            raise self.refusal(" ".join(words))

    def sees_symbol(self, kind: TokenType) -> bool:
        """Whether this symbol is next."""
        return self._at < len(self._tokens) and self._tokens[self._at].token_type is kind

    def takes_symbol(self, kind: TokenType) -> bool:
        """Whether this symbol was next, which is passed then."""
        found = self.sees_symbol(kind)
        self._at += found
        return found

    def expect_symbol(self, kind: TokenType, shown: str) -> None:
        """Pass this symbol."""
        if not self.takes_symbol(kind):
            raise self.refusal(f"'{shown}'")

    def end(self) -> None:
        """Pass the statement's end."""
        if self._at < len(self._tokens):
            raise self.refusal("the end of the statement")

    def name(self) -> tuple[str, ...]:
        """A name, and those that follow behind dots."""
        parts = [self.identifier()]
        while self.takes_symbol(TokenType.DOT):
            parts.append(self.identifier())
        return tuple(parts)

    def maybe_name(self) -> tuple[str, ...] | None:
        """The same; None, and nothing passed, where no name is here."""
        return self.name() if self._sees_name() else None

    def identifier(self) -> str:
        """One name, in backticks or not."""
        if not self._sees_name():
            raise self.refusal("a name")
        self._at += 1
        return str(self._tokens[self._at - 1].text)

    def column(self) -> str:
        """The name of a column, or of a field in one, with backticks where SQL needs them."""
        return ".".join(map(_quoted, self.name()))

    def alias(self, *but: str) -> str | None:
        """An alias, behind AS or alone; alone it is none of the words that may follow instead."""
        if self.takes("AS"):
            return self.identifier()
        if not self._sees_name():
            return None
        return None if any(self.sees(word) for word in but) else self.identifier()

    def integer(self) -> int:
        """A whole number."""
        text = self._literal(TokenType.NUMBER, "a whole number")
        if not text.isascii() or not text.isdigit():
            self._at -= 1
            raise self.refusal("a whole number")
        return int(text)

    def number(self) -> float:
        """A number that is not negative."""
        text = self._literal(TokenType.NUMBER, "a number")
        try:
            return float(text)
        except ValueError:
            self._at -= 1
            raise self.refusal("a number") from None

    def string(self, expected: str = "a text in quotes") -> str:
        """A text in quotes, in which a quote may be doubled."""
        found = self._literal(TokenType.STRING, expected)
        while self.sees_symbol(TokenType.STRING):
            before, token = self._tokens[self._at - 1], self._tokens[self._at]
            quote = self._text[token.start]
            if token.start != before.end + 1 or self._text[before.end] != quote:
                break
            found += quote + str(token.text)
            self._at += 1
        return found

    def identifier_or_string(self) -> str:
        """One name, or a text in quotes."""
        return self.string() if self.sees_symbol(TokenType.STRING) else self.identifier()

    def property_key(self) -> str:
        """A property's key: names with dots between, or a text in quotes."""
        if self.sees_symbol(TokenType.STRING):
            return self.string()
        return ".".join(self.name())

    def property_value(self) -> str:
        """A property's value: a text in quotes, a number, true or false."""
        if self.sees_symbol(TokenType.NUMBER):
            return self._literal(TokenType.NUMBER, "a number")
        for word in ("TRUE", "FALSE"):
            if self.takes(word):
                return word.lower()
        return self.string("a text in quotes, a number, true or false")

    def item(self) -> str:
        """The text up to the next comma of a list, or to its end."""
        return self.until(symbol=TokenType.COMMA)

    def until(self, *stops: str, symbol: TokenType | None = None) -> str:
        """The text up to the next of these words or this symbol, or to the end: letter by letter,
        and not empty. What is in parentheses or in a CASE is passed as a whole, and a word behind
        a dot is a name."""
        start = self._at
        depth = cases = 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            kind = token.token_type
            is_field = self._is_behind_dot(start)
            if not depth and not cases:
                if kind is symbol or kind in _CLOSING:
                    break
                if not is_field and any(_is_word(token, stop) for stop in stops):
                    break
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if not is_field:
                cases += (kind is TokenType.CASE) - (kind is TokenType.END and cases > 0)
            self._at += 1
        if self._at == start:
            raise self.refusal("an expression")
        return self._text[self._tokens[start].start : self._tokens[self._at - 1].end + 1]

    def in_parentheses(self, read: Callable[[], T]) -> T:
        """What `read` reads between parentheses."""
        self.expect_symbol(TokenType.L_PAREN, "(")
        found = read()
        self.expect_symbol(TokenType.R_PAREN, ")")
        return found

    def listed(self, read: Callable[[], T]) -> list[T]:
        """What `read` reads, once or more often, with commas between."""
        found = [read()]
        while self.takes_symbol(TokenType.COMMA):
            found.append(read())
        return found

    def columns(self) -> list[str]:
        """The names of a list of columns, which may stand in parentheses."""
        if self.sees_symbol(TokenType.L_PAREN):
            return self.in_parentheses(lambda: self.listed(self.column))
        return self.listed(self.column)

    def refusal(self, expected: str) -> InvalidCommand:
        """The error for what is here instead."""
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            found = f"{self._text[token.start : token.end + 1]} (position {token.start + 1})"
        else:
            found = "the end of the statement"
        return InvalidCommand("PARSE_SYNTAX_ERROR", f"expected {expected}, found {found}")

    def unknown(self, known: Sequence[str]) -> InvalidCommand:
        """The error for a statement that begins with none of the known words."""
        words = " ".join(str(token.text) for token in self._tokens[:2]) or "nothing"
        return InvalidCommand(
            "PARSE_SYNTAX_ERROR",
            f"expected one of {', '.join(known)}, found {words}",
            hint="other statements are Spark's: spark.sql",
        )

    def _check_gaps(self) -> None:
        """Raise `InvalidCommand` for what the tokenizer passes over and Spark does not, `{# #}`,
        and for comments that end elsewhere in Spark."""
        ends = [0, *(token.end + 1 for token in self._tokens)]
        starts = [*(token.start for token in self._tokens), len(self._text)]
        for end, start in zip(ends, starts, strict=True):
            gap = self._text[end:start]
            found = _COMMENT.sub("", gap).strip() or "".join(_NO_COMMENT.findall(gap))
            if found:
                raise InvalidCommand(
                    "PARSE_SYNTAX_ERROR", f"expected a blank or a comment, found {found}"
                )

    def _sees_name(self) -> bool:
        return self._at < len(self._tokens) and _is_name(self._tokens[self._at])

    def _is_behind_dot(self, start: int) -> bool:
        return self._at > start and self._tokens[self._at - 1].token_type is TokenType.DOT

    def _literal(self, kind: TokenType, expected: str) -> str:
        if not self.sees_symbol(kind):
            raise self.refusal(expected)
        self._at += 1
        return str(self._tokens[self._at - 1].text)


def _is_word(token: Token, word: str) -> bool:
    return token.token_type not in _LITERALS and str(token.text).upper() == word


def _is_name(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    return token.token_type not in _LITERALS and _is_plain(str(token.text))


def _is_plain(name: str) -> bool:
    return name.replace("_", "a").isalnum()


def _quoted(name: str) -> str:
    return name if _is_plain(name) else "`" + name.replace("`", "``") + "`"
