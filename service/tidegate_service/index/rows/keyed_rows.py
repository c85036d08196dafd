"""Rows of application transactions and metadata domains: the newest action of each key."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_protocol.log.codec import encode
from tidegate_service.index.postgres.parameters import Parameter, byteas, int8s, texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.rows.file_rows import chunks, sized
from tidegate_service.index.rows.newest import newest_keyed

# A run of commits has each key once. Its tables' locks are held, so that nobody else inserts one;
# ON CONFLICT would look for the row among all dead copies of it.
_SET = """
    WITH given AS MATERIALIZED (
        SELECT set.*, held.ctid AS row_id
        FROM unnest($1, $2, $3, $4) AS set (table_id, key, version, action)
        LEFT JOIN LATERAL ({newest}) AS held ON true
    ), changed AS (
        UPDATE {source} SET version = given.version, action = given.action
        FROM given
        WHERE {source}.ctid = given.row_id
    )
    INSERT INTO {source} (table_id, {key}, version, action)
    SELECT table_id, key, version, action FROM given WHERE row_id IS NULL
"""


def _setting(source: str, key: str) -> Statement:
    newest = newest_keyed(source, key, "set.table_id", "set.key")
    return Statement(_SET.format(source=source, key=key, newest=newest))


_SET_APP_TRANSACTIONS = _setting("app_transactions", "app_id")
_SET_DOMAINS = _setting("domain_metadata", "domain")
_DROP_DOMAINS = Statement(f"""
    DELETE FROM domain_metadata
    WHERE ctid = ANY (ARRAY (
        SELECT held.ctid
        FROM unnest($1, $2) AS dropped (table_id, domain)
        CROSS JOIN LATERAL ({
    newest_keyed("domain_metadata", "domain", "dropped.table_id", "dropped.domain")
}) AS held
    ))
""")

Keyed = tuple[UUID, str]
"""A table and a key in it."""


def set_app_transactions(txns: Mapping[Keyed, tuple[int, Txn]], **limits: int) -> Iterator[Query]:
    """`limits` are those of `file_rows.sized`."""
    for piece in sized(txns.items(), _bytes_of_keyed, **limits):
        yield Query(_SET_APP_TRANSACTIONS, *_keyed_columns(piece))


def set_domains(
    domains: Mapping[Keyed, tuple[int, DomainMetadata]], **limits: int
) -> Iterator[Query]:
    """`limits` are those of `file_rows.sized`."""
    removed = [keyed for keyed, (_, action) in domains.items() if action.removed]
    for keys in chunks(removed):
        tables, names = [table_id for table_id, _ in keys], [name for _, name in keys]
        yield Query(_DROP_DOMAINS, uuids(tables), texts(names))
    kept = (item for item in domains.items() if not item[1][1].removed)
    for piece in sized(kept, _bytes_of_keyed, **limits):
        yield Query(_SET_DOMAINS, *_keyed_columns(piece))


def _bytes_of_keyed(row: tuple[Keyed, tuple[int, Txn | DomainMetadata]]) -> int:
    return len(row[1][1].raw)


def _keyed_columns(
    rows: Sequence[tuple[Keyed, tuple[int, Txn | DomainMetadata]]],
) -> tuple[Parameter, ...]:
    return (
        uuids([table_id for (table_id, _), _ in rows]),
        texts([name for (_, name), _ in rows]),
        int8s([version for _, (version, _) in rows]),
        byteas([encode(action) for _, (_, action) in rows]),
    )
