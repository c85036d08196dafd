"""Predicate text to tokens, so that the parsing library meets expressions and nothing else.

The library reads all of SQL in many dialects, and tries a word in each role that it may have,
which takes exponential time on nested type names. Here every word is given its one role first:
the words of Spark's expression grammar in their places, everything else a plain name. Types
leave as text (`CAST(x AS INT)` becomes `CAST(x, 'INT')`, `DATE '2024-01-01'` becomes
a call), so that the library never reads a type. A query in parentheses becomes the call of an
unknown function, a window a cast to an unknown type: what is not evaluated is not read either.
"""

import re
from collections.abc import Callable

from sqlglot.tokenizer_core import Token, TokenType

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.syntax.dialect import FOREIGN, MAX_DEPTH, WORDS, scan
from tidegate_protocol.scan.predicate.syntax.queries import Queries, refuse_comments

LITERAL = " literal"
"""What follows the type in the name of the function that a typed literal becomes."""

_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
_LISTED = frozenset({TokenType.NUMBER, TokenType.STRING})
_OPERAND_ENDS = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.HEX_STRING,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.NULL,
        TokenType.TRUE,
        TokenType.FALSE,
        TokenType.END,
    }
    | _STRINGS
)
_INTERVAL_STARTS = frozenset(
    {TokenType.NUMBER, TokenType.VAR, TokenType.DASH, TokenType.L_PAREN} | _STRINGS
)
_OPENING = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})
_LITERAL_TYPES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME"})
_FROM_FUNCTIONS = frozenset({"EXTRACT", "TRIM", "SUBSTRING"})
_NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
_TYPE = re.compile(
    r"""(?: array | map | struct ) \s* < .* >
      | (?: interval | time | timestamp ) (?: \s+ \w+ )* (?: \s* \( [0-9\s]* \) (?: \s+ \w+ )* )?
      | \w+ (?: \s* \( [0-9,\s]* \) )? (?: \s+ collate \s+ \w+ )?""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_SUBQUERY = (
    (TokenType.L_PAREN, "("),
    (TokenType.VAR, "subquery"),
    (TokenType.L_PAREN, "("),
    (TokenType.R_PAREN, ")"),
    (TokenType.R_PAREN, ")"),
)
# One way to read each digit, as in `schema.values`.
_NUMBER = re.compile(r"(\d++(?:\.\d*+)?|\.\d++)(e[+-]?\d+)?([lsyfd]|bd)?", re.I | re.ASCII)
_HEX = re.compile(r"[0-9A-Fa-f]*")


def tokenize(
    text: str,
    *,
    is_column: Callable[[str], bool],
    pause: Callable[[], None],
    must_be_read: bool = False,
) -> list[Token]:
    """The tokens of a predicate, each in the one role that Spark gives it.

    `is_column` says whether a word names a column: a column may be called like a word of the
    grammar where that word could not stand. `pause` is called for each token. With `must_be_read`
    a query is refused that is too complex to be read. Raises `InvalidPredicate`.
    """
    tokens = scan(text)
    queries = Queries(text, tokens, is_column, pause, must_be_read=must_be_read)
    return _Roles(text, tokens, is_column, pause, queries).assign()


class _Roles:
    """One pass over the tokens. `_open` holds what is open: the name of the function whose
    parenthesis it is ("" for none, "[" for a bracket, "CASE" for a CASE)."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        is_column: Callable[[str], bool],
        pause: Callable[[], None],
        queries: Queries,
    ) -> None:
        self._text = text
        self._in = tokens
        self._out: list[Token] = []
        self._open: list[str] = []
        self._prefixes = 0
        self._is_column = is_column
        self._pause = pause
        self._queries = queries

    def assign(self) -> list[Token]:
        index = 0
        while index < len(self._in):
            self._pause()
            token = self._in[index]
            if self._is_listed(token, index):
                self._prefixes = 0
                self._out.append(token)
                index += 1
                continue
            self._refuse(token, index)
            index = self._place(token, index)
            self._check_depth(token)
        return self._out

    def _is_listed(self, token: Token, index: int) -> bool:
        """Whether it is a number, or a comma before a literal, which have one role wherever they
        stand: lists of them are long."""
        if token.comments:
            return False
        if token.token_type is TokenType.NUMBER:
            return True
        return token.token_type is TokenType.COMMA and self._kind(index + 1) in _LISTED

    def _place(self, token: Token, index: int) -> int:
        """Put the token, or what it becomes, out; the index after what it took."""
        kind = token.token_type
        if kind in _STRINGS:
            return self._string(index)
        if kind is TokenType.VAR and token.text[0].isdecimal():
            return self._digits(token, index)
        end = self._queries.subquery_end(index)
        if end is not None:
            return self._subquery(index, end)
        end = self._queries.window_end(index)
        if end is not None:
            return self._window(token, end)
        if token.text.upper() in WORDS and not self._in_role(token, index):
            return self._emit(TokenType.VAR, token, index)
        if kind is TokenType.DCOLON:
            return self._postfix_type(token, index)
        if kind is TokenType.ALIAS and self._open and self._open[-1] in ("CAST", "TRY_CAST"):
            return self._cast_type(token, index)
        if kind is TokenType.CASE:
            self._open.append("CASE")
        elif kind is TokenType.END:
            self._open.pop()
        elif kind in _OPENING:
            self._open.append(self._function_name() if kind is TokenType.L_PAREN else "[")
        elif kind in _OPENING.values() and self._open:
            self._open.pop()
        elif kind is TokenType.VAR and self._kind(index + 1) in _STRINGS:
            return self._typed_literal(token, index)
        return self._emit(kind, token, index)

    def _in_role(self, token: Token, index: int) -> bool:
        """Whether a word of the grammar stands where the grammar has it."""
        before = self._out[-1].token_type if self._out else None
        after = self._kind(index + 1)
        follows_operand = before in _OPERAND_ENDS
        match token.token_type:
            case _ if before is TokenType.DOT or after is TokenType.DOT:
                return False
            case TokenType.WHEN | TokenType.THEN | TokenType.ELSE | TokenType.END:
                return bool(self._open) and self._open[-1] == "CASE"
            case TokenType.DIV | TokenType.COLLATE:
                return follows_operand
            case TokenType.FOR:
                return bool(self._open) and self._open[-1] == "SUBSTRING"
            case TokenType.LIKE | TokenType.ILIKE | TokenType.RLIKE:
                return follows_operand or (before is TokenType.NOT and self._negates_operator())
            case TokenType.ESCAPE:
                return follows_operand and after in _STRINGS
            case TokenType.UNKNOWN:
                return before is TokenType.IS or self._follows_is_not()
            case TokenType.DISTINCT:
                return before in (TokenType.IS, TokenType.L_PAREN) or self._follows_is_not()
            case TokenType.FROM:
                return before is TokenType.DISTINCT or (
                    bool(self._open) and self._open[-1] in _FROM_FUNCTIONS
                )
            case TokenType.ALIAS:
                return follows_operand
            case TokenType.INTERVAL:
                return after in _INTERVAL_STARTS and not self._is_column(token.text)
            case TokenType.SELECT:
                return not self._is_column(token.text)
            case _:
                return True

    def _refuse(self, token: Token, index: int) -> None:
        kind = token.token_type
        refuse_comments(token)
        if kind is TokenType.SEMICOLON:
            raise InvalidPredicate("expected one expression, found ';'", position=token.start)
        if kind is TokenType.SELECT and self._in_role(token, index):
            raise InvalidPredicate("expected a query in parentheses", position=token.start)
        if kind in FOREIGN or (kind is TokenType.HEX_STRING and self._text[token.start] == "0"):
            raise InvalidPredicate(
                f"{excerpt(self._text[token.start : token.end + 1])} is not allowed in a predicate",
                position=token.start,
            )
        after = self._kind(index + 1)
        if kind is TokenType.COMMA and after in (TokenType.R_PAREN, TokenType.R_BRACKET):
            raise InvalidPredicate("expected an operand after ','", position=token.start)
        if (
            kind is TokenType.NOT
            and after is TokenType.NULL
            and self._kind(index - 1) in _OPERAND_ENDS
        ):
            raise InvalidPredicate("expected IS before NOT NULL", position=token.start)

    def _check_depth(self, token: Token) -> None:
        self._prefixes = self._prefixes + 1 if token.token_type in _PREFIXES else 0
        if len(self._open) > MAX_DEPTH or self._prefixes > MAX_DEPTH:
            raise InvalidPredicate(
                f"the predicate is nested deeper than {MAX_DEPTH} levels", position=token.start
            )

    def _kind(self, index: int) -> TokenType | None:
        return self._in[index].token_type if 0 <= index < len(self._in) else None

    def _emit(self, kind: TokenType, token: Token, index: int) -> int:
        self._out.append(_token(kind, token.text, token))
        return index + 1

    def _subquery(self, index: int, end: int) -> int:
        for kind, text in _SUBQUERY:
            self._out.append(_token(kind, text, self._in[index]))
        return end + 1

    def _window(self, token: Token, end: int) -> int:
        self._out.append(_token(TokenType.DCOLON, "::", token))
        self._out.append(_token(TokenType.STRING, "window", token))
        return end + 1

    def _function_name(self) -> str:
        if self._out and self._out[-1].token_type is TokenType.VAR:
            return self._out[-1].text.upper()
        return ""

    def _follows_is_not(self) -> bool:
        kinds = [token.token_type for token in self._out[-2:]]
        return kinds == [TokenType.IS, TokenType.NOT]

    def _negates_operator(self) -> bool:
        return len(self._out) > 1 and self._out[-2].token_type in _OPERAND_ENDS

    def _digits(self, token: Token, index: int) -> int:
        """A word that begins with a digit is a number with a suffix, or a name."""
        if _NUMBER.fullmatch(token.text):
            return self._emit(TokenType.NUMBER, token, index)
        if "." in token.text:
            raise InvalidPredicate(f"{excerpt(token.text)} is not a number", position=token.start)
        return self._emit(TokenType.VAR, token, index)

    def _string(self, index: int) -> int:
        """Neighbouring literals are one, as in Spark; a doubled quote is a quote."""
        first = self._in[index]
        parts = [first.text]
        last = first
        index += 1
        while self._kind(index) in _STRINGS:
            token = self._in[index]
            quote = self._text[token.start]
            touches = last.end + 1 == token.start and self._text[last.end] == quote
            if touches and last.token_type is TokenType.STRING:
                parts.append(quote)
            parts.append(token.text)
            last = token
            index += 1
        self._out.append(_token(TokenType.STRING, "".join(parts), first))
        return index

    def _typed_literal(self, token: Token, index: int) -> int:
        """`DATE '...'` as a call of a function whose name nobody can write."""
        name = token.text.upper()
        if name not in _LITERAL_TYPES and name != "X":
            return self._emit(TokenType.VAR, token, index)
        if name != "X":
            self._out.append(_token(TokenType.VAR, name + LITERAL, token))
            self._out.append(_token(TokenType.L_PAREN, "(", token))
            index = self._string(index + 1)
            self._out.append(_token(TokenType.R_PAREN, ")", token))
            return index
        index = self._string(index + 1)
        digits = self._out.pop().text
        if not _HEX.fullmatch(digits):
            raise InvalidPredicate(f"{excerpt(digits)} is not hexadecimal", position=token.start)
        self._out.append(_token(TokenType.HEX_STRING, digits, token))
        return index

    def _cast_type(self, token: Token, index: int) -> int:
        """`AS <type>` up to the closing parenthesis of the CAST."""
        depth = 0
        end = index + 1
        while end < len(self._in) and (depth > 0 or self._kind(end) is not TokenType.R_PAREN):
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._in[end].token_type, 0)
            refuse_comments(self._in[end])
            end += 1
        self._out.append(_token(TokenType.COMMA, ",", token))
        self._type_text(token, index + 1, end)
        return end

    def _postfix_type(self, token: Token, index: int) -> int:
        """`:: <type>`: a word, and what its brackets hold."""
        end = index + 2
        closing = {TokenType.L_PAREN: TokenType.R_PAREN}
        if index + 1 < len(self._in) and self._in[index + 1].text.upper() in _NESTED_TYPES:
            # After any other type it is the operator.
            closing[TokenType.LT] = TokenType.GT
        opening = self._kind(end)
        if opening in closing:
            depth = 0
            while end < len(self._in):
                refuse_comments(self._in[end])
                kind = self._kind(end)
                depth += (kind is opening) - (kind is closing[opening])
                end += 1
                if depth == 0:
                    break
        self._emit(TokenType.DCOLON, token, index)
        self._type_text(token, index + 1, end)
        return end

    def _type_text(self, token: Token, start: int, end: int) -> None:
        words = self._in[start:end]
        if not words:
            raise InvalidPredicate("a cast names no type", position=token.start)
        text = self._text[words[0].start : words[-1].end + 1]
        if not _TYPE.fullmatch(text):
            raise InvalidPredicate(f"{excerpt(text)} is not a type", position=words[0].start)
        self._out.append(_token(TokenType.STRING, text, words[0]))


def _token(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, line=place.line, col=place.col, start=place.start, end=place.end)
