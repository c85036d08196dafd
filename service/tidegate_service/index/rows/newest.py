"""Finding a table's row among the dead copies that commits left of it.

Each commit leaves a dead copy of its table's row. While any transaction of the server lasts, a
backup or the reading of a long log, no copy is removed, and an index holds an entry for each page
of them. Entries with equal keys are in the order of where their rows lie, and the newest copy lies
last while none is removed. So an index is read backward, and reading ends with the first row that
is visible. An equality would not do: it makes the order meaningless to the planner, which then
reads forward.

https://www.postgresql.org/docs/current/btree.html#BTREE-DEDUPLICATION
"""

from typing import Any

from sqlalchemy import ColumnElement, Select


def newest_row(table_id: str, columns: str, *, where: str = "true", locking: str = "") -> str:
    """A SELECT of these columns of the row in `tables` with the id that the expression `table_id`
    says; `where` is a further condition, `locking` its locking clause. Where the row does not meet
    the condition, all its dead copies are read."""
    return f"""
        SELECT {columns}
        FROM tables
        WHERE tables.id >= {table_id} AND tables.id <= {table_id} AND {where}
        ORDER BY tables.id DESC
        LIMIT 1
        {locking}
    """.rstrip()


def newest(query: Select[Any], key: ColumnElement[Any], value: object) -> Select[Any]:
    """The query of `tables`, for the row whose unique `key` has the value."""
    return query.where(key >= value, key <= value).order_by(key.desc()).limit(1)
