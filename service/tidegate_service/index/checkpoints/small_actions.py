"""A table's application transactions and domains as log lines, for a checkpoint.

All of them are in memory until the checkpoint is written, and each became an object, so a table
with very many, or very long ones, gets none. They come a page at a time: what the driver makes of a
page, it makes on the event loop.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.checkpoints import SmallActionLimits
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.binary import binary_rows

_PAGE = """
    SELECT max(key), string_agg(action, '\\x0a'::bytea ORDER BY key)
    FROM (
        SELECT key, action,
            sum(octet_length(action)) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING) AS so_far
        FROM (
            SELECT {key} AS key, action FROM {source}
            WHERE table_id = %(table_id)s AND (%(after)s::text IS NULL OR {key} > %(after)s)
            ORDER BY {key} LIMIT %(most)s
        ) AS first
    ) AS page
    WHERE so_far - octet_length(action) < %(most_bytes)s
"""
_TRANSACTIONS = _PAGE.format(source="app_transactions", key="app_id")
_AT_VERSION = """
    SELECT table_id, domain, action FROM domain_metadata
    UNION ALL
    SELECT table_id, domain, action FROM removed_domains
    WHERE removed_version > %(version)s
"""
_DOMAINS = _PAGE.format(source="domain_metadata", key="domain")
_DOMAINS_AT_VERSION = _PAGE.format(source=f"({_AT_VERSION}) AS domains", key="domain")


def check_few(number: int, size: int, limits: SmallActionLimits) -> None:
    """Raise `Refused` where they are too many, or too long together."""
    if not limits.allow(number, size):
        raise Refused(
            f"the table has {limits}, and no checkpoint is written of so many",
            code=Code.INVALID_REQUEST,
        )


async def transactions(
    connection: AsyncConnection, table_id: UUID, limits: IndexLimits
) -> Sequence[bytes]:
    return await _lines(connection, _TRANSACTIONS, {"table_id": table_id}, limits)


async def domains(
    connection: AsyncConnection, table_id: UUID, version: int | None, limits: IndexLimits
) -> Sequence[bytes]:
    """The latest ones, or those of a version since which none was set."""
    query = _DOMAINS if version is None else _DOMAINS_AT_VERSION
    return await _lines(connection, query, {"table_id": table_id, "version": version}, limits)


async def _lines(
    connection: AsyncConnection, query: str, of: Mapping[str, object], limits: IndexLimits
) -> Sequence[bytes]:
    found: list[bytes] = []
    most, most_bytes = limits.small_actions_a_page, limits.small_actions_page_bytes
    values = {**of, "after": None, "most": most, "most_bytes": most_bytes}
    while True:
        ((last, lines),) = await binary_rows(connection, query, values)
        if last is None:
            return found
        found += lines.split(b"\n")
        values["after"] = last
