"""Finding a row among the dead copies that commits left of it.

Each commit leaves a dead copy of its table's row, of each file's that it replaces, and of that of
each application transaction and domain that it sets. While any transaction of the server lasts, a
backup or the reading of a long log, no copy is removed, and an index holds an entry for each page
of them. Entries with equal keys are in the order of where their rows lie, and the newest copy lies
last while none is removed. So an index is read backward, and reading ends with the first row that
is visible. An equality would not do: it makes the order meaningless to the planner, which then
reads forward. What is inserted is looked for once more among all of them, by the unique index's
own check.

https://www.postgresql.org/docs/current/btree.html#BTREE-DEDUPLICATION
"""

from typing import Any

from sqlalchemy import ColumnElement, Select


def newest_row(
    value: str, columns: str, *, key: str = "tables.id", where: str = "true", locking: str = ""
) -> str:
    """A SELECT of these columns of the row in `tables` whose unique `key` is what the expression
    `value` says; `where` is a further condition, `locking` its locking clause. Where the row does
    not meet the condition, all its dead copies are read."""
    return f"""
        SELECT {columns}
        FROM tables
        WHERE {key} >= {value} AND {key} <= {value} AND {where}
        ORDER BY {key} DESC
        LIMIT 1
        {locking}
    """.rstrip()


def newest_keyed(source: str, key: str, table_id: str, value: str) -> str:
    """A SELECT of the `ctid` of the row whose `table_id` and `key` are what the expressions say."""
    return f"""
        SELECT {source}.ctid
        FROM {source}
        WHERE {source}.table_id = {table_id}
          AND {source}.{key} >= {value} AND {source}.{key} <= {value}
        ORDER BY {source}.{key} DESC
        LIMIT 1
    """.rstrip()


def newest(query: Select[Any], key: ColumnElement[Any], value: object) -> Select[Any]:
    """The query of `tables`, for the row whose unique `key` has the value."""
    return query.where(key >= value, key <= value).order_by(key.desc()).limit(1)
