"""The schemas of a catalog: the second parts of the names of its tables."""

from tidegate_service.core.context import Context
from tidegate_service.core.tables.lookup import list_tables

_BEHIND_A_DOT = "/"
"""The next character: what follows a schema's tables in the order of names."""


async def schemas_of(
    context: Context, catalog: str, *, after: str | None, limit: int
) -> tuple[list[tuple[str, str]], str | None]:
    """Up to `limit` schemas that have tables which the caller may read, as (catalog, schema), and
    what to give as `after` for more; None at their end. Each costs one index scan."""
    found: list[tuple[str, str]] = []
    cursor = after
    while len(found) < limit:
        page = await list_tables(context, prefix=f"{catalog}.", cursor=cursor, limit=1)
        if not page.tables:
            return found, None
        name, schema, _ = page.tables[0].name.split(".")
        if (name.lower(), schema.lower()) not in {(n.lower(), s.lower()) for n, s in found}:
            found.append((name, schema))
        cursor = f"{name}.{schema}{_BEHIND_A_DOT}"
    return found, cursor
