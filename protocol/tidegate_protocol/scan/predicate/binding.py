"""An expression tree over a table's columns as compiled nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.evaluation import (
    arithmetic,
    casts,
    comparison,
    conditionals,
    dates,
    functions,
    patterns,
)
from tidegate_protocol.scan.predicate.evaluation.coercion import is_numeric
from tidegate_protocol.scan.predicate.evaluation.datetimes import says_zone
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Condition,
    Node,
    Scalar,
    alternative,
    certain,
    conjunction,
    constant,
    known,
    negation,
    once,
    to_condition,
    to_scalar,
)
from tidegate_protocol.scan.predicate.evaluation.values import FALSE, TRUE
from tidegate_protocol.scan.predicate.syntax import literals, names
from tidegate_protocol.scan.predicate.syntax.lexing import LITERAL
from tidegate_protocol.scan.predicate.syntax.names import Columns, function_name
from tidegate_protocol.scan.predicate.syntax.parsing import (
    Listed,
    LiteralList,
    binds_as_in_spark,
    parts,
    position,
)
from tidegate_protocol.schema.data_types import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    type_name,
)

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
}
_LITERAL_TYPES = {
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_QUANTIFIERS = frozenset({"all", "any", "some"})
_SPECIAL_DATES = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})
"""Words that Spark takes for the time at which it reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The operands of the AND at the top of a predicate, compiled. `names_instants` says that it
    names points in time that are the same in sessions of any zone."""

    conjuncts: tuple[Condition, ...]
    names_instants: bool


def bind(tree: exp.Expr, columns: Columns, *, pause: Callable[[], None]) -> Bound:
    """A predicate, compiled; `pause` is called for each node.

    Raises `InvalidPredicate` for what is no condition, or not over these columns. What Spark
    allows elsewhere than in a filter (a window, an aggregate) is a value that is not known.
    """
    binder = _Binder(columns, pause)
    found = parts(tree, exp.And)
    # Text and null become boolean as operands of AND, but not by themselves.
    to_condition = binder.condition if len(found) > 1 else binder.boolean
    conjuncts = tuple(to_condition(part) for part in found)
    return Bound(conjuncts=conjuncts, names_instants=binder.names_instants)


class _Binder:
    def __init__(self, columns: Columns, pause: Callable[[], None]) -> None:
        self._columns = columns
        self._pause = pause
        self.names_instants = False
        self._builders: dict[type[exp.Expr], Callable[..., Node | None]] = {
            exp.And: lambda node: conjunction(self._conditions(node)),
            exp.Or: lambda node: alternative(self._conditions(node)),
            exp.Not: lambda node: negation(self.condition(node.this)),
            exp.NullSafeEQ: lambda node: comparison.equal_or_both_null(*self._operands(node)),
            exp.NullSafeNEQ: lambda node: negation(
                comparison.equal_or_both_null(*self._operands(node))
            ),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: lambda node: self._like(node, "\\"),
            exp.Escape: self._escape,
            exp.Neg: self._negative,
            exp.Column: lambda node: names.column(node, self._columns),
            exp.Dot: self._dot,
            exp.Literal: self._literal,
            exp.HexString: lambda node: literals.binary(node.this),
            exp.Null: lambda _: constant(VOID, None),
            exp.Boolean: lambda node: certain(TRUE if node.this else FALSE),
            exp.Case: self._case,
            exp.Anonymous: self._call,
            exp.Extract: lambda node: dates.extract(node.name.lower(), self.node(node.expression)),
            exp.Substring: self._substring,
            **dict.fromkeys(_COMPARISONS, self._comparison),
            **dict.fromkeys(_ARITHMETIC, self._arithmetic),
        }

    def node(self, tree: exp.Expr) -> Node:
        """Any expression; what is not understood becomes a foreign value."""
        self._pause()
        while isinstance(tree, exp.Paren):
            tree = tree.this
        builder = self._builders.get(type(tree))
        if builder is None or not self._is_understood(tree):
            return names.opaque(tree, self._columns)
        built = builder(tree)
        return names.opaque(tree, self._columns) if built is None else built

    def condition(self, tree: exp.Expr) -> Condition:
        """An operand that must be boolean. Text is cast to it, as ANSI mode does."""
        node = self.node(tree)
        if isinstance(node, Scalar) and node.type in (STRING, VOID):
            node = casts.cast(node, BOOLEAN)
        return _boolean(tree, node)

    def boolean(self, tree: exp.Expr) -> Condition:
        """An expression that is boolean by itself."""
        return _boolean(tree, self.node(tree))

    def _is_understood(self, tree: exp.Expr) -> bool:
        for operand in (tree.args.get("this"), tree.args.get("expression")):
            if isinstance(operand, exp.Not) and not isinstance(tree, exp.Connector | exp.Not):
                raise InvalidPredicate(
                    "NOT cannot be an operand here; put it in parentheses",
                    position=position(operand),
                )
        return binds_as_in_spark(tree)

    def _operands(self, tree: exp.Expr) -> tuple[Node, Node]:
        return self.node(tree.this), self.node(tree.expression)

    def _text(self, text: str) -> Scalar:
        if says_zone(text):
            self.names_instants = True
        return literals.text(text)

    def _conditions(self, tree: exp.Connector) -> list[Condition]:
        return [self.condition(part) for part in parts(tree, type(tree))]

    def _comparison(self, tree: exp.Binary) -> Node:
        return comparison.compare(_COMPARISONS[type(tree)], *self._operands(tree))

    def _arithmetic(self, tree: exp.Binary) -> Node:
        left, right = self._operands(tree)
        return arithmetic.binary(_ARITHMETIC[type(tree)], to_scalar(left), to_scalar(right))

    def _negative(self, tree: exp.Neg) -> Node:
        number = tree.this
        if isinstance(number, exp.Literal) and not number.is_string:
            return literals.number(number.name, negated=True, position=position(tree))
        return arithmetic.negative(to_scalar(self.node(number)))

    def _dot(self, tree: exp.Dot) -> Node | None:
        """A long path of names, or a field of something else."""
        root: exp.Expr = tree
        while isinstance(root, exp.Dot):
            root = root.this
        if isinstance(root, exp.Literal):
            raise InvalidPredicate("a literal has no fields", position=position(root))
        return names.column(tree, self._columns) if isinstance(root, exp.Column) else None

    def _literal(self, tree: exp.Literal) -> Node:
        if tree.is_string:
            return self._text(tree.name)
        return literals.number(tree.name, position=position(tree))

    def _is(self, tree: exp.Is) -> Node:
        wanted = tree.expression
        if isinstance(wanted, exp.Null):
            found = comparison.is_null(self.node(tree.this))
        elif isinstance(wanted, exp.Boolean):
            truth = TRUE if wanted.this else FALSE
            found = comparison.is_truth(self.condition(tree.this), truth)
        else:
            raise InvalidPredicate(
                "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS",
                position=position(tree),
            )
        return negation(found) if tree.args.get("negate") else found

    def _in(self, tree: exp.In) -> Node | None:
        choices = tree.expressions
        if not choices:
            raise InvalidPredicate(
                "expected values in parentheses after IN", position=position(tree)
            )
        if isinstance(tree.this, exp.Tuple):
            return None
        value = self.node(tree.this)
        if isinstance(choices[0], LiteralList):
            return comparison.one_of(value, [*map(self._listed, choices[0].args["values"])])
        return comparison.one_of(value, [self.node(choice) for choice in choices])

    def _listed(self, listed: Listed) -> Node:
        self._pause()
        token, negated = listed
        if token.token_type is TokenType.STRING:
            return self._text(token.text)
        return literals.number(token.text, negated=negated, position=token.start)

    def _between(self, tree: exp.Between) -> Node:
        if tree.args.get("symmetric") is not None:
            raise InvalidPredicate("BETWEEN SYMMETRIC is not Spark SQL", position=position(tree))
        low, high = self.node(tree.args["low"]), self.node(tree.args["high"])
        return comparison.between(self.node(tree.this), low, high)

    def _escape(self, tree: exp.Escape) -> Node | None:
        escape = tree.expression
        if not isinstance(escape, exp.Literal) or len(escape.name) != 1:
            raise InvalidPredicate(
                "expected one character after ESCAPE", position=position(tree.this)
            )
        return self._like(tree.this, escape.name)

    def _like(self, tree: exp.Expr, escape: str) -> Node | None:
        if not isinstance(tree, exp.Like):
            return None
        if _is_quantifier(tree.expression):
            return None
        text, pattern = self._operands(tree)
        found = patterns.like(text, pattern, escape)
        return negation(found) if tree.args.get("negate") else found

    def _case(self, tree: exp.Case) -> Node:
        # Compared with each branch: bound, and computed, once.
        subject = None if tree.this is None else once(to_scalar(self.node(tree.this)))
        branches: list[tuple[Node, Node]] = []
        for branch in tree.args["ifs"]:
            when: Node
            if subject is None:
                when = self.condition(branch.this)
            else:
                when = comparison.compare("=", subject, self.node(branch.this))
            branches.append((when, self.node(branch.args["true"])))
        default = tree.args.get("default")
        otherwise = constant(VOID, None) if default is None else self.node(default)
        return conditionals.case(branches, otherwise)

    def _call(self, tree: exp.Anonymous) -> Node | None:
        name = function_name(tree)
        if name.endswith(LITERAL):
            return self._typed_literal(tree, name.removesuffix(LITERAL))
        if name in ("cast", "try_cast"):
            return self._cast(tree, or_null=name == "try_cast")
        if not functions.is_known(name, len(tree.expressions)):
            return None
        arguments = [self.node(argument) for argument in tree.expressions]
        return functions.build(name, arguments)

    def _cast(self, tree: exp.Anonymous, *, or_null: bool) -> Node | None:
        """A call that the text's CAST became, or `cast(x)` as nobody may write it."""
        if len(tree.expressions) != 2:
            raise InvalidPredicate("expected CAST(... AS type)", position=position(tree))
        operand, name = tree.expressions
        type_ = literals.type_named(name.name) if isinstance(name, exp.Literal) else None
        if type_ is None:
            return None
        value = to_scalar(self.node(operand))
        if TIMESTAMP in (value.type, type_) and (is_numeric(value.type) or is_numeric(type_)):
            # Seconds since 1970 in UTC.
            self.names_instants = True
        return casts.cast(value, type_, or_null=or_null)

    def _typed_literal(self, tree: exp.Anonymous, name: str) -> Node | None:
        type_ = _LITERAL_TYPES.get(name)
        if type_ is None:
            return None
        text = tree.expressions[0].name
        value = casts.cast(self._text(text), type_, or_null=True)
        if known(value) is None:
            if _SPECIAL_DATES.intersection(text.lower().split()[:1]):
                return None
            raise InvalidPredicate(
                f"{excerpt(text)} is not a {type_name(type_)}", position=position(tree)
            )
        return value

    def _substring(self, tree: exp.Substring) -> Node | None:
        start, length = tree.args.get("start"), tree.args.get("length")
        if start is None:
            return None
        return functions.substring(
            self.node(tree.this), self.node(start), None if length is None else self.node(length)
        )


def _is_quantifier(node: exp.Expr) -> bool:
    """Whether this is the `ANY (...)` of `LIKE ANY (...)`, or its like."""
    return isinstance(node, exp.Anonymous) and function_name(node) in _QUANTIFIERS


def _boolean(tree: exp.Expr, node: Node) -> Condition:
    if isinstance(tree, exp.Tuple):
        raise InvalidPredicate("expected a condition, found a list", position=position(tree))
    if isinstance(node, Scalar) and node.type is not None and node.type != BOOLEAN:
        found = "null" if node.type == VOID else f"a value of type {type_name(node.type)}"
        raise InvalidPredicate(f"expected a condition, found {found}", position=position(tree))
    return to_condition(node)
