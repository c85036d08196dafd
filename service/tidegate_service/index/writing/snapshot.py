"""The first version of a registered table: a whole snapshot, written a batch at a time.

It is written in the transaction that makes the table, so nobody sees a part of it.
"""

import itertools
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import BigInteger, Numeric, Uuid, bindparam, insert, literal, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.actions import Action, Add, Metadata, Protocol
from tidegate_protocol.log.codec import encode
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.records import RatifiedCommit, TableRecord
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.core.sharing import offload
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.engine import has_transaction_timeout
from tidegate_service.index.postgres.failures import DriverError, violated_key
from tidegate_service.index.rows import commit_rows, file_rows
from tidegate_service.index.rows.commit_rows import NewCommit
from tidegate_service.index.rows.effects import effects_of
from tidegate_service.index.rows.file_rows import FILES_KEY, FileChange
from tidegate_service.index.rows.keyed_rows import domain_rows, set_app_transactions, set_domains
from tidegate_service.index.rows.partitions import unindex_unpartitioned
from tidegate_service.index.rows.records import table_record
from tidegate_service.index.schema.tables import metadata_versions, tables
from tidegate_service.index.writing.tombstones import insert_tombstones

# Raising `transaction_timeout` does not restart its clock, which runs from the transaction's begin.
# Setting it to 0 first stops the clock, and the second setting starts it anew.
_PATIENCE = text("""
    SELECT set_config('idle_in_transaction_session_timeout', '120s', true),
        set_config('transaction_timeout', '0', true),
        set_config('transaction_timeout', '30min', true)
""")
_PATIENCE_BEFORE_17 = text("SET LOCAL idle_in_transaction_session_timeout = '120s'")
_DATE_BACK = text("""
    UPDATE commits
    SET timestamp = least(commits.timestamp, :before - 1 - (head.latest - commits.version))
    FROM (SELECT latest_version AS latest FROM tables WHERE id = :table_id) AS head
    WHERE commits.table_id = :table_id
        AND commits.timestamp > :before - 1 - (head.latest - commits.version)
""").bindparams(bindparam("table_id", type_=Uuid), bindparam("before", type_=BigInteger))
_DATE_IN_ORDER = text("""
    UPDATE commits SET timestamp = dated.most
    FROM (
        SELECT version, version + min(timestamp - version) OVER (ORDER BY version DESC) AS most
        FROM commits WHERE table_id = :table_id
    ) AS dated
    WHERE commits.table_id = :table_id
        AND commits.version = dated.version
        AND commits.timestamp > dated.most
""").bindparams(bindparam("table_id", type_=Uuid))


class BaseLoad:
    """Writes one base, the snapshot of a table's first version: `begin`, `write` for each batch of
    its actions, `finish`."""

    def __init__(self, table_id: UUID, commit: RatifiedCommit) -> None:
        self._table_id = table_id
        self._commit = commit
        self._version = commit.record.version
        self._protocol: Protocol | None = None
        self._metadata: Metadata | None = None
        self._unpartitioned = False
        self._num_files = 0
        self._size_bytes = 0

    async def begin(self, connection: AsyncConnection) -> None:
        base = NewCommit(table_id=self._table_id, commit=self._commit, is_base=True)
        await pipeline.run(await driver_of(connection), [commit_rows.insert([base])])

    async def write(self, connection: AsyncConnection, actions: Sequence[Action]) -> None:
        """Raises `UnreadableFile` for a file that an earlier action has added."""
        effects = await offload.run(len(actions), effects_of, actions)
        added = [(key, add) for key, add in effects.files.items() if add is not None]
        if len(added) < sum(isinstance(action, Add) for action in actions):
            raise _named_twice()
        driver = await driver_of(connection)
        changes = [FileChange(self._table_id, self._version, key, add) for key, add in added]
        try:
            for piece in file_rows.pieces(changes):
                await pipeline.run(driver, file_rows.open_(piece))
        except DriverError as error:
            if violated_key(error) != FILES_KEY:
                raise
            raise _named_twice() from error
        table_id, version = self._table_id, self._version
        txns = {(table_id, app_id): (version, txn) for app_id, txn in effects.txns.items()}
        domains = domain_rows(
            ((table_id, name), version, domain) for name, domain in effects.domains.items()
        )
        for query in itertools.chain(set_app_transactions(txns), set_domains(domains)):
            await pipeline.run(driver, [query])
        for some in file_rows.sized(effects.removed.items(), lambda removed: len(removed[1].raw)):
            await pipeline.run(driver, [insert_tombstones(table_id, version, some)])
        self._protocol = effects.protocol or self._protocol
        self._metadata = effects.metadata or self._metadata
        self._unpartitioned = self._unpartitioned or not all(a.partition_values for _, a in added)
        self._num_files += len(added)
        self._size_bytes += sum(add.size for _, add in added)

    async def finish(self, connection: AsyncConnection) -> TableRecord:
        if self._protocol is None or self._metadata is None:
            raise ValueError("a base needs a protocol and metadata")
        if self._unpartitioned and self._metadata.partition_columns:
            await unindex_unpartitioned(
                await driver_of(connection), self._table_id, at=self._version
            )
        state = {"protocol": encode(self._protocol), "metadata": encode(self._metadata)}
        await connection.execute(
            insert(metadata_versions).values(
                table_id=self._table_id, version=self._version, **state
            )
        )
        moved = await connection.execute(
            update(tables)
            .where(tables.c.id == self._table_id, tables.c.latest_version == -1)
            .values(
                first_version=self._version,
                latest_version=self._version,
                published_version=self._version,
                latest_timestamp=self._commit.record.timestamp,
                num_files=self._num_files,
                size_bytes=literal(self._size_bytes, Numeric()),
                **state,
            )
            .returning(*tables.c)
        )
        row = moved.one_or_none()
        if row is None:
            raise ServiceError(f"table {self._table_id} has a version already")
        return table_record(row)


async def take_time(connection: AsyncConnection) -> None:
    """Let this transaction wait for the object store, and take longer than others. Each call begins
    its time anew."""
    driver = await driver_of(connection)
    patience = _PATIENCE if has_transaction_timeout(driver) else _PATIENCE_BEFORE_17
    await connection.execute(patience)


async def date_back(connection: AsyncConnection, table_id: UUID, before: int) -> TableRecord:
    """Make every version so far older than `before` (ms), in their order."""
    await connection.execute(_DATE_BACK, {"table_id": table_id, "before": before})
    row = await connection.execute(
        update(tables)
        .where(tables.c.id == table_id, tables.c.latest_timestamp >= before)
        .values(latest_timestamp=before - 1)
        .returning(*tables.c)
    )
    return table_record(row.one())


async def date_in_order(connection: AsyncConnection, table_id: UUID) -> None:
    """Make every version older than all that follow it, in one pass over them."""
    await connection.execute(_DATE_IN_ORDER, {"table_id": table_id})


def _named_twice() -> UnreadableFile:
    return UnreadableFile("a file of the table is named twice in the checkpoint")
