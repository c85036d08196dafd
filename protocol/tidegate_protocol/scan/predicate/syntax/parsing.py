"""Tokens to an expression tree that is certain to be the one Spark would build.

The library's grammar is wider than Spark's and orders some operators differently. A tree is
accepted only if it holds every AND, OR, WHEN and THEN of the text, and is evaluated only where
each operator's operands bind tighter than the operator does in Spark (`binds_as_in_spark`):
an operator-precedence grammar has exactly one such tree.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.syntax.dialect import DIALECT
from tidegate_protocol.scan.predicate.syntax.lexing import tokenize
from tidegate_protocol.scan.predicate.syntax.steps import SteppingParser, Steps, TooManySteps

MAX_TREE_DEPTH = 200
"""Levels of the tree; a chain of one of AND, OR counts once."""

_NUMBERS = frozenset({TokenType.NUMBER})
_LITERALS = _NUMBERS | {TokenType.STRING}
Listed = tuple[Token, bool]
"""A literal's token, and whether a minus stands before it."""


class LiteralList(exp.Expression):
    """What an IN lists, where these are numbers and texts alone: one node with all `Listed`, since
    there may be many."""

    arg_types: ClassVar[dict[str, bool]] = {"values": True}


class _Parser(SteppingParser):
    """Spark's expression grammar: functions stay calls by name, and no other dialect's
    operators, types, parameters or statements are read."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., object]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., object]]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in ("EXTRACT", "TRIM", "SUBSTRING")
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar[set[str]] = set()
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., object]]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Callable[..., object]]] = {}
    RANGE_PARSERS: ClassVar[dict[TokenType, Callable[..., object]]] = {
        kind: SparkParser.RANGE_PARSERS[kind]
        for kind in (
            TokenType.BETWEEN,
            TokenType.ILIKE,
            TokenType.IN,
            TokenType.IS,
            TokenType.LIKE,
            TokenType.RLIKE,
        )
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., object]]] = {
        kind: SparkParser.UNARY_PARSERS[kind]
        for kind in (TokenType.PLUS, TokenType.NOT, TokenType.TILDE, TokenType.DASH)
    }
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Callable[..., object] | None]] = {
        TokenType.DOT: None,
        TokenType.DCOLON: lambda _, this, to: exp.Anonymous(this="cast", expressions=[this, to]),
    }
    CAST_COLUMN_OPERATORS: ClassVar[set[TokenType]] = set()
    TYPE_TOKENS: ClassVar[set[TokenType]] = set()
    # Or else the arguments of `array(x)[0]` are lost.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Func]]] = {}

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        literals = self._literals()
        if literals is None:
            return super()._parse_in(this, alias)
        return self.expression(exp.In(this=this, expressions=[literals]))

    def _literals(self) -> LiteralList | None:
        """The list that begins here, if nothing but literals and commas stands in it: each of them
        would be tried as a query, an alias and an operand of each operator."""
        if self._curr.token_type is not TokenType.L_PAREN:
            return None
        tokens, index = self._tokens, self._index
        found: list[Listed] = []
        is_closed = False
        # The last token is the list's end at most.
        while index + 2 < len(tokens):
            self.pause()
            index += 1
            negated = tokens[index].token_type is TokenType.DASH
            index += negated
            value, after = tokens[index], tokens[min(index + 1, len(tokens) - 1)].token_type
            if value.token_type not in (_NUMBERS if negated else _LITERALS):
                break
            found.append((value, negated))
            index += 1
            is_closed = after is TokenType.R_PAREN
            if after is not TokenType.COMMA:
                break
        self.steps.take(index - self._index)
        if not is_closed:
            return None
        self._advance(index + 1 - self._index)
        return self.expression(LiteralList(values=tuple(found)), found[0][0])


def parse(
    text: str,
    *,
    is_column: Callable[[str], bool],
    pause: Callable[[], None],
    must_be_read: bool = False,
) -> exp.Expr:
    """The expression tree of a predicate; `pause` is called again and again, `must_be_read` is that
    of `tokenize`. Raises `InvalidPredicate`."""
    tokens = tokenize(text, is_column=is_column, pause=pause, must_be_read=must_be_read)
    parser = _Parser(DIALECT, Steps.for_text(text), pause)
    try:
        trees = parser.parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise _syntax_error(text, tokens, error) from None
    except TooManySteps:
        raise InvalidPredicate("the predicate is too complex") from None
    except RecursionError:
        raise InvalidPredicate("the predicate is nested too deeply") from None
    except Exception:
        # Text that the library's own checks don't foresee makes it fail with whatever error
        # the misread tokens lead to (IndexError, AttributeError, ...); the text is to blame.
        raise InvalidPredicate(f"{excerpt(text)} is not a predicate") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expr):
        raise InvalidPredicate(f"{excerpt(text)} is not one expression")
    _check_depth(tree)
    _check_complete(tree, tokens)
    return tree


def parts(tree: exp.Expr, kind: type[exp.Connector]) -> list[exp.Expr]:
    """The operands of a chain of one connective, left to right, parentheses taken off; the
    tree itself where it is no such chain."""
    found: list[exp.Expr] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        while isinstance(node, exp.Paren):
            node = node.this
        if type(node) is kind:
            pending.append(node.expression)
            pending.append(node.this)
        else:
            found.append(node)
    return found


def position(node: exp.Expr) -> int | None:
    """Where in the text the node begins, as far as its names and literals know; else where what
    is right around it does."""
    start = _start(node)
    return _start(node.parent) if start is None and node.parent is not None else start


def _start(node: exp.Expr) -> int | None:
    starts = [start for child in node.walk() if isinstance(start := child.meta.get("start"), int)]
    return min(starts, default=None)


_BINDING: dict[type[exp.Expr], int] = {
    exp.Or: 0,
    exp.And: 1,
    exp.Not: 2,
    exp.In: 3,
    exp.Between: 3,
    exp.Like: 3,
    exp.ILike: 3,
    exp.RegexpLike: 3,
    exp.Escape: 3,
    exp.Is: 3,
    exp.NullSafeNEQ: 3,
    exp.EQ: 4,
    exp.NEQ: 4,
    exp.LT: 4,
    exp.LTE: 4,
    exp.GT: 4,
    exp.GTE: 4,
    exp.NullSafeEQ: 4,
    exp.BitwiseOr: 5,
    exp.BitwiseXor: 6,
    exp.BitwiseAnd: 7,
    exp.BitwiseLeftShift: 8,
    exp.BitwiseRightShift: 8,
    exp.Add: 9,
    exp.Sub: 9,
    exp.DPipe: 9,
    exp.Mul: 10,
    exp.Div: 10,
    exp.Mod: 10,
    exp.IntDiv: 10,
    exp.Neg: 11,
    exp.BitwiseNot: 11,
}
_TIGHTEST = 12
_NOT_CHAINED = frozenset({2, 11})
"""Prefix operators, whose operand may be the same again."""


def binds_as_in_spark(node: exp.Expr) -> bool:
    """Whether every operand of this operator binds tighter than it does in Spark's grammar, the
    left one at least as tight where operators of one level are read from the left."""
    if isinstance(node, exp.Escape):
        # LIKE and its ESCAPE are one operator.
        node = node.this
    level = _BINDING.get(type(node), _TIGHTEST)
    if level == _TIGHTEST:
        return True
    operands = [
        operand
        for key in ("this", "expression", "low", "high")
        if isinstance(operand := node.args.get(key), exp.Expr)
    ]
    chained = level in _NOT_CHAINED or level != _BINDING[exp.In]
    return all(
        _BINDING.get(type(operand), _TIGHTEST) + (chained and first) > level
        for first, operand in zip([True, *[False] * 3], operands, strict=False)
    )


def _check_depth(tree: exp.Expr) -> None:
    level = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise InvalidPredicate(f"the predicate is nested deeper than {MAX_TREE_DEPTH} levels")


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And | exp.Or):
        yield from parts(node, type(node))
    else:
        yield from node.iter_expressions()


def _check_complete(tree: exp.Expr, tokens: list[Token]) -> None:
    """The library lets some words be left out (`BETWEEN 1 2`, `WHEN a b`)."""
    words = dict.fromkeys((TokenType.AND, TokenType.OR, TokenType.THEN), 0)
    for token in tokens:
        if token.token_type in words:
            words[token.token_type] += 1
    nodes = {TokenType.AND: 0, TokenType.OR: 0, TokenType.THEN: 0}
    for node in tree.walk():
        match node:
            case exp.And() | exp.Between():
                nodes[TokenType.AND] += 1
            case exp.Or():
                nodes[TokenType.OR] += 1
            case exp.If():
                nodes[TokenType.THEN] += 1
    for kind, count in words.items():
        if count != nodes[kind]:
            raise InvalidPredicate(
                f"syntax error: {kind.name} is missing or stands where it cannot be read"
            )


def _syntax_error(text: str, tokens: list[Token], error: ParseError) -> InvalidPredicate:
    details = error.errors[0]
    place = (details.get("line"), details.get("col"))
    token = next((token for token in tokens if (token.line, token.col) == place), tokens[-1])
    word = text[token.start : token.end + 1]
    return InvalidPredicate(f"syntax error at {excerpt(word)}", position=token.start)
