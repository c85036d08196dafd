"""Which transaction ids are in use, of many at a time."""

from collections.abc import Sequence
from uuid import UUID

from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.parameters import texts, uuids
from tidegate_service.index.postgres.pipeline import Driver, Query, Statement, as_text
from tidegate_service.index.rows.keys import key

# Each id costs one scan of three indexes; the LIMITs keep the planner from turning that around.
USED_IDS = Statement("""
    SELECT asked.table_id, asked.transaction_id
    FROM unnest($1, $2) AS asked (table_id, transaction_id)
    CROSS JOIN LATERAL (
        (SELECT 1 FROM commits AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
        UNION ALL
        (SELECT 1 FROM past_commits AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
        UNION ALL
        (SELECT 1 FROM aborted_transactions AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
    ) AS known
""")


def asking(ids: Sequence[tuple[UUID, str]]) -> Query:
    """For those of these keys, each of a table, that are in use."""
    return Query(
        USED_IDS, uuids([table_id for table_id, _ in ids]), texts([name for _, name in ids])
    )


async def unused(driver: Driver, table_id: UUID, names: Sequence[str]) -> set[str]:
    """Those of a table's ids that are not in use."""
    (used,) = await pipeline.run(driver, [asking([(table_id, key(name)) for name in names])])
    taken = {as_text(row[1]) for row in used}
    return {name for name in names if key(name) not in taken}


async def is_used(driver: Driver, table_id: UUID, name: str) -> bool:
    """The same of one id, in a transaction of its own."""
    return bool(await pipeline.read(driver, asking([(table_id, key(name))])))
