"""Rows of application transactions and metadata domains: the newest action of each key, and the
last one of domains that were removed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_protocol.log.codec import encode
from tidegate_service.index.postgres.parameters import Parameter, byteas, int8s, texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.rows.file_rows import sized
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
# What the run itself had set before is not in the index, and comes with it.
_DROP_DOMAINS = Statement(f"""
    WITH given AS MATERIALIZED (
        SELECT dropped.*, held.ctid AS row_id
        FROM unnest($1, $2, $3, $4, $5)
            AS dropped (table_id, domain, removed_version, version, action)
        LEFT JOIN LATERAL ({
    newest_keyed("domain_metadata", "domain", "dropped.table_id", "dropped.domain")
}) AS held ON true
    ), ended AS (
        DELETE FROM domain_metadata WHERE ctid = ANY (ARRAY (SELECT row_id FROM given))
        RETURNING table_id, domain, version, action
    )
    INSERT INTO removed_domains (table_id, domain, version, action, removed_version)
    SELECT table_id, domain, coalesce(given.version, ended.version),
        coalesce(given.action, ended.action), given.removed_version
    FROM given LEFT JOIN ended USING (table_id, domain)
    WHERE coalesce(given.version, ended.version) IS NOT NULL
    ON CONFLICT (table_id, domain) DO UPDATE SET
        version = excluded.version, action = excluded.action,
        removed_version = excluded.removed_version
""")

Keyed = tuple[UUID, str]
"""A table and a key in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRow:
    """What a run of commits makes of a domain. `last_set` is the last action that sets the domain,
    and its version: None where that was before the run. `removed_version` is the first version
    behind that removes the domain."""

    last_set: tuple[int, DomainMetadata] | None = None
    removed_version: int | None = None


def domain_rows(
    actions: Iterable[tuple[Keyed, int, DomainMetadata]],
) -> dict[Keyed, DomainRow]:
    """`actions` in the order of their versions."""
    rows: dict[Keyed, DomainRow] = {}
    for keyed, version, action in actions:
        if not action.removed:
            rows[keyed] = DomainRow(last_set=(version, action))
        elif (row := rows.get(keyed, DomainRow())).removed_version is None:
            rows[keyed] = replace(row, removed_version=version)
    return rows


def set_app_transactions(txns: Mapping[Keyed, tuple[int, Txn]], **limits: int) -> Iterator[Query]:
    """`limits` are those of `file_rows.sized`."""
    for piece in sized(txns.items(), _bytes_of_keyed, **limits):
        yield Query(_SET_APP_TRANSACTIONS, *_keyed_columns(piece))


def set_domains(domains: Mapping[Keyed, DomainRow], **limits: int) -> Iterator[Query]:
    """`limits` are those of `file_rows.sized`."""
    removed = (item for item in domains.items() if item[1].removed_version is not None)
    for piece in sized(removed, _bytes_of_removed, **limits):
        yield Query(
            _DROP_DOMAINS,
            uuids([table_id for (table_id, _), _ in piece]),
            texts([name for (_, name), _ in piece]),
            int8s([row.removed_version for _, row in piece]),
            int8s([row.last_set[0] if row.last_set else None for _, row in piece]),
            byteas([encode(row.last_set[1]) if row.last_set else None for _, row in piece]),
        )
    kept = (
        (keyed, row.last_set)
        for keyed, row in domains.items()
        if row.removed_version is None and row.last_set is not None
    )
    for kept_piece in sized(kept, _bytes_of_keyed, **limits):
        yield Query(_SET_DOMAINS, *_keyed_columns(kept_piece))


def _bytes_of_removed(item: tuple[Keyed, DomainRow]) -> int:
    last_set = item[1].last_set
    return 0 if last_set is None else len(last_set[1].raw)


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
