"""The columns that an expression names, also where nothing else of it is understood."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.evaluation.nodes import Scalar, foreign
from tidegate_protocol.scan.predicate.syntax.lexing import LITERAL
from tidegate_protocol.scan.predicate.syntax.literals import type_named
from tidegate_protocol.scan.predicate.syntax.parsing import position
from tidegate_protocol.schema.data_types import TIMESTAMP

Columns = Callable[[Sequence[str]], Scalar | None]
"""The column or nested field at a path of names; None where the table has none."""

_WITHOUT_PARENTHESES = """
    current_catalog current_database current_date current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user user
"""
_FUNCTIONS_WITHOUT_PARENTHESES = frozenset(_WITHOUT_PARENTHESES.split())
_OF_EACH_CALL = """
    curdate current_timezone input_file_block_length input_file_block_start input_file_name
    java_method monotonically_increasing_id now rand randn random randstr reflect shuffle
    spark_partition_id try_reflect uniform uuid
"""
_CHANGING = _FUNCTIONS_WITHOUT_PARENTHESES | frozenset(_OF_EACH_CALL.split())
"""Functions that may give another value for the same row the next time."""
_OF_NOW = "unix_timestamp"
"""One that does so without arguments."""
_UNIT_FIRST = frozenset(
    {"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"}
)
"""Functions that, given three arguments, take a word for a unit as the first."""
_OF_INSTANTS = frozenset(
    {"date_trunc", "hour", "minute", "second", "timestamp", "to_timestamp"}
    | {f"timestamp{LITERAL}", f"timestamp_ltz{LITERAL}"}
)
"""Calls that make an instant of a date or a text, by the session's time zone."""
_FILE_METADATA = "_metadata"
"""A struct that Spark shows of every file, and no schema has."""


def function_name(node: exp.Anonymous) -> str:
    """The name of a call, in lower case."""
    name = node.this
    return (name.name if isinstance(name, exp.Expr) else str(name)).lower()


def column(node: exp.Expr, columns: Columns) -> Scalar:
    """A name as a column. Raises `InvalidPredicate` for one that the table does not have."""
    path = _path(node)
    found = columns(path)
    if found is not None:
        return found
    if len(path) == 1 and path[0].lower() in _FUNCTIONS_WITHOUT_PARENTHESES:
        return foreign([])
    if path[0].lower() == _FILE_METADATA:
        return foreign([])
    raise InvalidPredicate(f"there is no column {excerpt('.'.join(path))}", position=position(node))


def makes_instants(tree: exp.Expr) -> bool:
    """Whether an instant is made of something else: a literal, a cast, a call."""
    for node in tree.walk():
        if isinstance(node, exp.Extract) and node.name.lower() in _OF_INSTANTS:
            return True
        if not isinstance(node, exp.Anonymous):
            continue
        if (name := function_name(node)) in _OF_INSTANTS:
            return True
        type_ = node.expressions[-1] if name in ("cast", "try_cast") and node.expressions else None
        if isinstance(type_, exp.Literal) and type_named(type_.name) == TIMESTAMP:
            return True
    return False


def opaque(node: exp.Expr, columns: Columns) -> Scalar:
    """An expression that is not evaluated, with the columns that it names.

    Raises `InvalidPredicate` for a name that the table does not have, and for `*` outside of a
    call.
    """
    found: list[Scalar] = []
    pending: list[tuple[exp.Expr, frozenset[str]]] = [(node, frozenset())]
    while pending:
        current, parameters = pending.pop()
        if isinstance(current, exp.Star) and not isinstance(current.parent, exp.Anonymous):
            raise InvalidPredicate("'*' is not an expression", position=position(current))
        if isinstance(current, exp.Column):
            if _path(current)[0].lower() not in parameters:
                found.append(column(current, columns))
            continue
        if isinstance(current, exp.Lambda):
            parameters = parameters | {name.name.lower() for name in current.expressions}
            pending.append((current.this, parameters))
            continue
        pending.extend((child, parameters) for child in _children(current))
    return foreign(found)


def changing(node: exp.Expr, columns: Columns) -> str | None:
    """The name of a function in an expression that may give another value for the same row the
    next time; None where there is none that is known."""
    parameters = {
        name.name.lower() for each in node.find_all(exp.Lambda) for name in each.expressions
    }
    for current in node.walk():
        if isinstance(current, exp.Anonymous):
            name = function_name(current)
            if name in _CHANGING or (name == _OF_NOW and not current.expressions):
                return name
        elif isinstance(current, exp.Column):
            path = _path(current)
            name = path[0].lower()
            is_call = len(path) == 1 and name in _FUNCTIONS_WITHOUT_PARENTHESES - parameters
            if is_call and columns(path) is None:
                return name
    return None


def _children(node: exp.Expr) -> list[exp.Expr]:
    children = list(node.iter_expressions())
    if (
        isinstance(node, exp.Anonymous)
        and function_name(node) in _UNIT_FIRST
        and len(node.expressions) == 3
    ):
        children.remove(node.expressions[0])
    return children


def _path(node: exp.Expr) -> list[str]:
    return [part.name for part in node.parts] if isinstance(node, exp.Column | exp.Dot) else []
