"""Pages of tables with their columns, which take several times as long as the tables' metadata."""

from tidegate_service.core.context import Context
from tidegate_service.core.tables.lookup import Page, list_tables, metadata_bytes

PAGE_BYTES = 1024 * 1024
"""What the metadata of a page's tables has, but of a page of one. Each column's type is written
three times: that makes five MiB of it where columns are short."""


async def page_of(context: Context, prefix: str, *, cursor: str | None, limit: int) -> Page:
    """As `list_tables`, of fewer bytes."""
    page = await list_tables(
        context, prefix=prefix, cursor=cursor, limit=limit, most_bytes=PAGE_BYTES
    )
    if len(page.tables) == 1 or metadata_bytes(page.tables) <= PAGE_BYTES:
        return page
    # The last one was too many: it may be one of megabytes.
    kept = page.tables[:-1]
    return Page(tables=kept, next_cursor=kept[-1].name)
