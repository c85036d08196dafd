"""Actions as values. They go through `codec.decode`, so that they carry raw bytes as real ones
do."""

import json
from collections.abc import Iterable
from typing import Any

from tests.builders import lines
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import (
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


def decoded(line: lines.Line) -> Any:
    """The action of a log line."""
    return codec.decode(json.dumps(line, separators=(",", ":")).encode())


def add(*described: Any, **fields: Any) -> Add:
    """As `lines.add` says."""
    return decoded(lines.add(*described, **fields))


def remove(path: str = "a", **fields: Any) -> Remove:
    return decoded(lines.remove(path, **fields))


def cdc(path: str = "_change_data/c", **fields: Any) -> AddCDCFile:
    return decoded(lines.cdc(path, **fields))


def metadata(*described: Any, **fields: Any) -> Metadata:
    """As `lines.metadata` says."""
    return decoded(lines.metadata(*described, **fields))


def protocol(*versions: int, **features: Any) -> Protocol:
    """As `lines.protocol` says."""
    return decoded(lines.protocol(*versions, **features))


def features(*names: str, readers: Iterable[str] = ()) -> Protocol:
    """A protocol of reader 3 and writer 7 that lists these features; `readers` are in both."""
    return protocol(3, 7, readers=readers, writers=[*names, *readers])


def managed(*names: str) -> Protocol:
    """The protocol of a catalog-managed table."""
    readers = ["catalogManaged", *(n for n in names if n == "deletionVectors")]
    writers = [n for n in names if n not in readers]
    return features("appendOnly", "invariants", "inCommitTimestamp", *writers, readers=readers)


def txn(app_id: str = "app", version: int = 1) -> Txn:
    return decoded({"txn": {"appId": app_id, "version": version, "lastUpdated": 1234}})


def domain(name: str = "d", configuration: str = "{}", *, removed: bool = False) -> DomainMetadata:
    body = {"domain": name, "configuration": configuration, "removed": removed}
    return decoded({"domainMetadata": body})


def commit_info(**fields: Any) -> CommitInfo:
    return decoded({"commitInfo": fields})


def unknown(kind: str = "sorcery", **fields: Any) -> UnknownAction:
    return decoded({kind: fields})
