"""Tidegate's client: Delta Lake tables whose commits go through a Tidegate service.

    lake = tidegate.connect("http://127.0.0.1:8720")
    with lake.table("main.air.flights").transaction() as txn:
        txn.remove(txn.filter_files("month = 5"))
        receipt = txn.commit("DELETE")

`tidegate.spark` is imported when it is first used, and needs the `spark` extra.
"""

import importlib
from types import ModuleType

from tidegate.commit_stats import CommitStats
from tidegate.conflict_check import ConflictCheck
from tidegate.errors import (
    Attempts,
    CommitStateUnknown,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConflictError,
    ConflictInfo,
    InvalidProposal,
    InvalidRequest,
    MaxCommitRetriesExceeded,
    MetadataChangedException,
    NotFound,
    PermissionDenied,
    ProtocolChangedException,
    ReadVersionTooOld,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    TableQuarantined,
    TidegateError,
    TooLarge,
    TransactionAborted,
    TransactionActive,
    TransactionClosed,
    TransactionCommitted,
    TransactionNotFound,
    Unauthenticated,
    UnexpectedAnswer,
    VersionNotFound,
)
from tidegate.lake import Lake, connect
from tidegate.models import (
    Commit,
    CommitMetrics,
    DataFile,
    Receipt,
    Scan,
    TableHead,
    TableVersion,
    TransactionStatus,
)
from tidegate.statement import sql
from tidegate.table import Table
from tidegate.transaction import Transaction
from tidegate.transaction_proposing import TransactionState
from tidegate.version import __version__
from tidegate.wire.manifests import Manifests
from tidegate.wire.vacuum import Vacuumed
from tidegate_protocol.proposal.transaction import IsolationLevel

__all__ = [
    "Attempts",
    "Commit",
    "CommitMetrics",
    "CommitStateUnknown",
    "CommitStats",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConflictCheck",
    "ConflictError",
    "ConflictInfo",
    "DataFile",
    "InvalidProposal",
    "InvalidRequest",
    "IsolationLevel",
    "Lake",
    "Manifests",
    "MaxCommitRetriesExceeded",
    "MetadataChangedException",
    "NotFound",
    "PermissionDenied",
    "ProtocolChangedException",
    "ReadVersionTooOld",
    "Receipt",
    "Scan",
    "ServiceUnavailable",
    "Table",
    "TableAlreadyExists",
    "TableHead",
    "TableNotFound",
    "TableQuarantined",
    "TableVersion",
    "TidegateError",
    "TooLarge",
    "Transaction",
    "TransactionAborted",
    "TransactionActive",
    "TransactionClosed",
    "TransactionCommitted",
    "TransactionNotFound",
    "TransactionState",
    "TransactionStatus",
    "Unauthenticated",
    "UnexpectedAnswer",
    "Vacuumed",
    "VersionNotFound",
    "__version__",
    "connect",
    "sql",
]


def __getattr__(name: str) -> ModuleType:
    if name == "spark":
        return importlib.import_module("tidegate.spark")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
