"""ALTER TABLE and COMMENT ON TABLE, each as one method of `Alter`."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from sqlglot.tokenizer_core import TokenType

from tidegate.spark.alter.alter import Alter
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement

Change = Callable[[Alter], object]


def alter_table(statement: Statement, session: Session) -> DataFrame:
    """ALTER TABLE table change"""
    statement.expect("TABLE")
    name = statement.name()
    change = _change(statement)
    statement.end()
    return _done(session, name, change)


def comment_on(statement: Statement, session: Session) -> DataFrame:
    """COMMENT ON TABLE table IS text; NULL takes the comment away"""
    statement.expect("ON", "TABLE")
    name = statement.name()
    statement.expect("IS")
    comment = None if statement.takes("NULL") else statement.string()
    statement.end()
    return _done(session, name, lambda alter: alter.set_comment(comment))


def _done(session: Session, name: tuple[str, ...], change: Change) -> DataFrame:
    table = session.table(name)
    change(
        Alter(table, session.spark, user_metadata=session.user_metadata, retries=session.retries)
    )
    return session.nothing()


def _change(statement: Statement) -> Change:
    for word, read in _CHANGES.items():
        if statement.takes(word):
            return read(statement)
    raise statement.refusal(f"one of {', '.join(_CHANGES)}")


def _add(statement: Statement) -> Change:
    """ADD CONSTRAINT name CHECK (condition), ADD COLUMNS (column type, ...)"""
    if statement.takes("CONSTRAINT"):
        name = statement.identifier()
        statement.expect("CHECK")
        condition = statement.in_parentheses(statement.until)
        return lambda alter: alter.add_constraint(name, condition)
    _expect_columns(statement)
    definitions = _definitions(statement)
    return lambda alter: alter.add_columns(definitions)


def _replace(statement: Statement) -> Change:
    """REPLACE COLUMNS (column type, ...)"""
    _expect_columns(statement)
    definitions = _definitions(statement)
    return lambda alter: alter.replace_columns(definitions)


def _rename(statement: Statement) -> Change:
    """RENAME COLUMN column TO name"""
    statement.expect("COLUMN")
    name = statement.column()
    statement.expect("TO")
    new_name = statement.column()
    return lambda alter: alter.rename_column(name, new_name)


def _drop(statement: Statement) -> Change:
    """DROP CONSTRAINT [IF EXISTS] name, DROP FEATURE name [TRUNCATE HISTORY], DROP COLUMNS (column,
    ...)"""
    if statement.takes("CONSTRAINT"):
        if_exists = statement.takes("IF", "EXISTS")
        constraint = statement.identifier()
        return lambda alter: alter.drop_constraint(constraint, if_exists=if_exists)
    if statement.takes("FEATURE"):
        feature = statement.identifier_or_string()
        truncates = statement.takes("TRUNCATE", "HISTORY")
        return lambda alter: alter.drop_feature(feature, truncate_history=truncates)
    _expect_columns(statement)
    names = statement.columns()
    return lambda alter: alter.drop_columns(*names)


def _alter_column(statement: Statement) -> Change:
    """ALTER [COLUMN] column TYPE type, COMMENT text, SET NOT NULL, DROP NOT NULL, SET DEFAULT
    value, DROP DEFAULT, FIRST, AFTER column, SYNC IDENTITY"""
    statement.takes("COLUMN")
    name = statement.column()
    if statement.takes("TYPE"):
        type_ = statement.until()
        return lambda alter: alter.change_column(name, type=type_)
    if statement.takes("COMMENT"):
        comment = statement.string()
        return lambda alter: alter.change_column(name, comment=comment)
    if statement.takes("SET", "NOT", "NULL"):
        return lambda alter: alter.change_column(name, nullable=False)
    if statement.takes("DROP", "NOT", "NULL"):
        return lambda alter: alter.change_column(name, nullable=True)
    if statement.takes("SET", "DEFAULT"):
        value = statement.until()
        return lambda alter: alter.set_default(name, value)
    if statement.takes("DROP", "DEFAULT"):
        return lambda alter: alter.drop_default(name)
    if statement.takes("SYNC", "IDENTITY"):
        return lambda alter: alter.sync_identity(name)
    if statement.takes("FIRST"):
        return lambda alter: alter.change_column(name, position="FIRST")
    if statement.takes("AFTER"):
        position = f"AFTER {statement.column()}"
        return lambda alter: alter.change_column(name, position=position)
    raise statement.refusal(
        "TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, FIRST, AFTER or "
        "SYNC IDENTITY"
    )


def _cluster(statement: Statement) -> Change:
    """CLUSTER BY (column, ...), CLUSTER BY NONE"""
    statement.expect("BY")
    if statement.takes("NONE"):
        return lambda alter: alter.cluster_by()
    names = statement.in_parentheses(lambda: statement.listed(statement.column))
    return lambda alter: alter.cluster_by(*names)


def _set(statement: Statement) -> Change:
    """SET TBLPROPERTIES (key = value, ...)"""
    statement.expect("TBLPROPERTIES")
    given = properties(statement)
    return lambda alter: alter.set_properties(given)


def _unset(statement: Statement) -> Change:
    """UNSET TBLPROPERTIES [IF EXISTS] (key, ...)"""
    statement.expect("TBLPROPERTIES")
    if_exists = statement.takes("IF", "EXISTS")
    names = statement.in_parentheses(lambda: statement.listed(statement.property_key))
    return lambda alter: alter.unset_properties(*names, if_exists=if_exists)


def properties(statement: Statement) -> dict[str, str]:
    """`(key = value, ...)`; values are texts, numbers, true or false."""
    found: dict[str, str] = {}

    def each() -> None:
        key = statement.property_key()
        if key in found:
            raise InvalidCommand("DUPLICATE_KEY", f"Found duplicate keys {key}")
        statement.takes_symbol(TokenType.EQ)
        found[key] = statement.property_value()

    statement.in_parentheses(lambda: statement.listed(each))
    return found


def _expect_columns(statement: Statement) -> None:
    if not (statement.takes("COLUMNS") or statement.takes("COLUMN")):
        raise statement.refusal("COLUMNS")


def _definitions(statement: Statement) -> str:
    if statement.sees_symbol(TokenType.L_PAREN):
        return statement.in_parentheses(statement.until)
    return statement.until()


_CHANGES: dict[str, Callable[[Statement], Change]] = {
    "ADD": _add,
    "ALTER": _alter_column,
    "CHANGE": _alter_column,
    "CLUSTER": _cluster,
    "DROP": _drop,
    "RENAME": _rename,
    "REPLACE": _replace,
    "SET": _set,
    "UNSET": _unset,
}
"""By the word behind the table's name."""
