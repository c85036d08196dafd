"""Actions and proposals in few words, for every test of the protocol package.

Actions go through `codec.decode`, so that they carry raw bytes as real ones do.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import Created, Ratified
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import (
    Action,
    Add,
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import (
    IsolationLevel,
    PreparedTransaction,
    Proposal,
    Reads,
    ReadState,
    WinningCommit,
)
from tidegate_protocol.replay.commits import summarize

TABLE = "t"
NOW = 1_800_000_000_000
TABLE_ID = "11111111-2222-4333-8444-555555555555"
ONE_RECORD = '{"numRecords":1}'
DEFAULT = object()

_ids = itertools.count(1)


def line(kind: str, body: Mapping[str, Any]) -> Any:
    """The action of a log line."""
    return codec.decode(json.dumps({kind: body}).encode())


def add(path: str = "a", partition: Mapping[str, str | None] | None = None, **fields: Any) -> Add:
    """An add; `fields` by their log names, taken away where None."""
    body = {
        "path": path,
        "partitionValues": dict(partition or {}),
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": ONE_RECORD,
        **fields,
    }
    return line("add", {name: value for name, value in body.items() if value is not None})


def remove(path: str = "a", **fields: Any) -> Remove:
    return line("remove", {"path": path, "deletionTimestamp": 4, "dataChange": True, **fields})


def cdc(path: str = "_change_data/c", **fields: Any) -> AddCDCFile:
    body = {"path": path, "partitionValues": {}, "size": 1, "dataChange": False, **fields}
    return line("cdc", body)


def vector(name: str = "vBn[lx{q8@P<9BNH/isA", **fields: Any) -> dict[str, Any]:
    """A deletion vector descriptor, for `deletionVector=`."""
    body = {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40}
    return {**body, "cardinality": 1, **fields}


def wide(records: int = 10, **fields: Any) -> str:
    """Statistics as a file with a deletion vector has them."""
    return json.dumps({"numRecords": records, "tightBounds": False, **fields})


def column(name: str, type_: Any = "integer", *, nullable: bool = True, **metadata: Any) -> Any:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def metadata(
    columns: Iterable[Any] = ("v",),
    partition_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
    **fields: Any,
) -> Metadata:
    """A metaData action; a column is a name (an integer then) or what `column` makes."""
    fields_of_schema = [column(c) if isinstance(c, str) else c for c in columns]
    body = {
        "id": TABLE_ID,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields_of_schema}),
        "partitionColumns": list(partition_by),
        "configuration": dict(properties or {}),
        "createdTime": 1_700_000_000_000,
        **fields,
    }
    return line("metaData", body)


def protocol(
    reader: int = 1,
    writer: int = 2,
    *,
    readers: Iterable[str] | None = None,
    writers: Iterable[str] | None = None,
) -> Protocol:
    body: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if readers is not None:
        body["readerFeatures"] = list(readers)
    if writers is not None:
        body["writerFeatures"] = list(writers)
    return line("protocol", body)


def features(*names: str, readers: Iterable[str] = ()) -> Protocol:
    """A protocol of reader 3 and writer 7 that lists these features; `readers` are in both."""
    return protocol(3, 7, readers=readers, writers=[*names, *readers])


def managed(*names: str) -> Protocol:
    """The protocol of a catalog-managed table."""
    readers = ["catalogManaged", *(n for n in names if n == "deletionVectors")]
    writers = [n for n in names if n not in readers]
    return features("appendOnly", "invariants", "inCommitTimestamp", *writers, readers=readers)


def txn(app_id: str = "app", version: int = 1) -> Txn:
    return line("txn", {"appId": app_id, "version": version, "lastUpdated": 1234})


def domain(name: str = "d", configuration: str = "{}", *, removed: bool = False) -> DomainMetadata:
    body = {"domain": name, "configuration": configuration, "removed": removed}
    return line("domainMetadata", body)


def commit_info(**fields: Any) -> CommitInfo:
    return line("commitInfo", fields)


def unknown(kind: str = "sorcery", **fields: Any) -> UnknownAction:
    return line(kind, fields)


def reads(
    *predicates: str,
    whole_table: bool = False,
    files: Iterable[str] = (),
    app_ids: Iterable[str] = (),
) -> Reads:
    return Reads(
        whole_table=whole_table,
        predicates=predicates,
        files=frozenset(files),
        app_ids=frozenset(app_ids),
    )


def proposal(
    *actions: Action,
    read_version: int | None = 0,
    reads: Reads | None = None,
    operation: str = "WRITE",
    transaction_id: str | None = None,
    isolation_level: IsolationLevel | None = None,
    **fields: Any,
) -> Proposal:
    """A proposal with an id of its own."""
    return Proposal(
        transaction_id=transaction_id or f"txn-{next(_ids)}",
        operation=operation,
        actions=actions,
        read_version=read_version,
        reads=reads or Reads(),
        isolation_level=isolation_level,
        **fields,
    )


def state(
    table_metadata: Metadata | None = None,
    table_protocol: Protocol | None = None,
    *,
    version: int = 0,
) -> ReadState:
    """A table of one integer column `v`, reader 1 and writer 2, unless told otherwise."""
    return ReadState(
        version=version,
        protocol=table_protocol or protocol(),
        metadata=table_metadata or metadata(),
    )


NO_TABLE = ReadState(version=-1, protocol=None, metadata=None)


def prepared(*actions: Action, at: ReadState | None = None, **fields: Any) -> PreparedTransaction:
    """A valid transaction that read version 0 of `state()`, or what `at` says."""
    read = at or state()
    result = prepare(proposal(*actions, read_version=read.version, **fields), read)
    assert isinstance(result, PreparedTransaction), result
    return result


def winner(
    *actions: Action, version: int = 1, operation: str | None = "WRITE", blind: bool = False
) -> WinningCommit:
    """A commit that won `version`; `blind` is what its commitInfo claims."""
    info: dict[str, Any] = {"timestamp": NOW, "isBlindAppend": blind}
    if operation is not None:
        info["operation"] = operation
    return summarize(version, (commit_info(**info), *actions), timestamp_fallback=0)


def ledger(
    table_metadata: Metadata | None = None, table_protocol: Protocol | None = None
) -> Ledger:
    """A ledger with the table `TABLE` at version 0."""
    first = proposal(
        table_protocol or protocol(),
        table_metadata or metadata(),
        read_version=-1,
        operation="CREATE TABLE",
    )
    made, outcome = Ledger().create(TABLE, first, now_ms=NOW)
    assert isinstance(outcome, Created), outcome
    return made


def landed(before: Ledger, *actions: Action, now_ms: int = NOW, **fields: Any) -> Ledger:
    """The ledger after one more commit to `TABLE`, read at its latest version."""
    fields.setdefault("read_version", before.tables[TABLE].latest_version)
    after, outcome = before.propose(TABLE, proposal(*actions, **fields), now_ms=now_ms)
    assert isinstance(outcome, Ratified), outcome
    return after
