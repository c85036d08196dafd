"""Tables with many files or many versions, made quickly and the way the service makes them.

Files come in by commits of 100,000 over HTTP. Versions are decided by the service's own rules and
written by its own index, a few hundred in one Postgres transaction; their files are put into the
log without waiting for the disk. `check` compares such a table with its log, as
`tidegate verify` does.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import psycopg

from benchmarks.load.asking import NDJSON, Connection
from benchmarks.rig.service import Service, Table, succeeded
from tidegate_protocol.log.codec import decode
from tidegate_protocol.log.file_names import commit_name
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import Invalid, Proposal, ReadState, ReadyCommit
from tidegate_service.core.access.roles import ANONYMOUS
from tidegate_service.core.log.put_version import ratified
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine

PARTITIONS = 100
FILES_A_COMMIT = 100_000
_VERSIONS_A_SECTION = 250
_POLL_S = 0.02


def commits_url(table: Table) -> str:
    return f"/api/v1/tables/{table.name}/commits"


def file_path(name: str, number: int) -> str:
    """Of a file in the partition of its number, as Spark would call it."""
    return (
        f"p={partition(number)}/part-{number % 200:05}-{name}-{number:08x}-4d0a-9d3f"
        "-2f1f5f8a9b7c.c000.snappy.parquet"
    )


def partition(number: int) -> str:
    return f"w{number % PARTITIONS:03}"


def file_size(number: int) -> int:
    """In bytes."""
    return 33_554_432 + number


def add_line(name: str, number: int) -> bytes:
    """An `add` of 360 bytes with statistics of every column, as a file of 120,000 rows has them.
    Files of later numbers have higher ids."""
    low = number * 120_000
    stats = (
        f'{{"numRecords":120000,"minValues":{{"id":{low},"value":{-number * 0.25}}},'
        f'"maxValues":{{"id":{low + 119_999},"value":{number * 0.5 + 1000.125}}},'
        f'"nullCount":{{"id":0,"value":12}}}}'
    )
    return msgspec.json.encode(
        {
            "add": {
                "path": file_path(name, number),
                "partitionValues": {"p": partition(number)},
                "size": file_size(number),
                "modificationTime": 1_763_700_000_000 + number,
                "dataChange": True,
                "stats": stats,
            }
        }
    )


def proposal_lines(name: str, *, first: int, count: int) -> Iterator[bytes]:
    """A blind append of so many files as lines of NDJSON."""
    envelope = {"operation": "WRITE", "transaction_id": f"{name}-{first}"}
    yield msgspec.json.encode(envelope) + b"\n"
    for number in range(first, first + count):
        yield add_line(name, number) + b"\n"


def grow_files(service: Service, table: Table, *, files: int, commits: int, name: str) -> None:
    """Append so many files in so many commits; each holds at most `FILES_A_COMMIT`."""
    a_commit = files // commits
    if files % commits or a_commit > FILES_A_COMMIT:
        raise ValueError(f"expected a number of files that {commits} commits can hold: {files}")
    with Connection(service) as connection:
        for first in range(0, files, a_commit):
            body = b"".join(proposal_lines(name, first=first, count=a_commit))
            connection.post(commits_url(table), body, expected=201, kind=NDJSON)


def grow_versions(service: Service, table: Table, *, through: int, name: str) -> None:
    """Bring a table to a version, by blind appends of one file each, all published."""
    await_published(service, table)
    asyncio.run(_grow_versions(service, table, through=through, name=name))


async def _grow_versions(service: Service, table: Table, *, through: int, name: str) -> None:
    log = log_folder(table)
    engine = create_engine(service.database_url)
    try:
        index = PostgresIndex(engine)
        record = await index.table(table.name)
        assert record is not None
        while record.latest_version < through:
            async with index.commit_section(record.id) as section:
                upto = min(through, section.table.latest_version + _VERSIONS_A_SECTION)
                while section.table.latest_version < upto:
                    await _append_one(section, log, name)
                await section.save()
            record = section.table
    finally:
        await engine.dispose()


async def _append_one(section: CommitSection, log: Path, name: str) -> None:
    version = section.table.latest_version
    state = ReadState(
        version=version, protocol=section.table.protocol, metadata=section.table.metadata
    )
    proposal = Proposal(
        transaction_id=f"{name}-{version}",
        operation="WRITE",
        actions=(decode(add_line(name, version)),),
    )
    prepared = prepare(proposal, state)
    if isinstance(prepared, Invalid):
        raise RuntimeError(f"expected an append that can be made, found {prepared}")
    ready: ReadyCommit = complete(
        prepared,
        version=version + 1,
        now_ms=section.now_ms,
        previous_timestamp=section.table.latest_timestamp,
    )
    assert isinstance(ready.content, bytes)
    with (log / commit_name(ready.version)).open("xb") as file:
        file.write(ready.content)
    await section.append(ratified(ready, published=True, attempts=1, duration_ms=1, by=ANONYMOUS))


def await_published(service: Service, table: Table) -> None:
    """Wait until all versions lie in the log."""
    while len(set(service.head(table))) > 1:
        time.sleep(_POLL_S)


def await_dates(service: Service, table: Table) -> None:
    """Wait until the clock has passed the dates of all versions: they are a millisecond apart at
    least, and were made in less. A plain table whose head is dated far ahead is looked at anew by
    each commit, as one that was left alone for long."""
    head = succeeded(service.http.get(f"{service.api}/tables/{table.name}")).json()
    time.sleep(max(0.0, head["latest_timestamp"] / 1000 - time.time()))


def settle(database_url: str) -> None:
    """Have Postgres and the disk do now what they would do in the minutes after such growth."""
    os.sync()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def check(service: Service, table: Table) -> None:
    """Raise `RuntimeError` where the index of a table is not what its log says."""
    url = f"{service.api}/tables/{table.name}/verify"
    query: dict[str, int] = {}
    while True:
        page = succeeded(service.http.get(url, params=query)).json()
        if not page["consistent"]:
            raise RuntimeError(f"{table.name} is not what its log says: {page['differences'][:3]}")
        if page["next_version"] is None:
            return
        query = {"from_version": page["next_version"]}


def log_folder(table: Table) -> Path:
    """Of a table on local files."""
    return Path(unquote(urlsplit(table.location).path)) / "_delta_log"
