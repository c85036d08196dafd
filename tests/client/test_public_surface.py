"""What users may import, and what importing it costs."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import tidegate

PUBLIC = [
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
"""Written down a second time, so that no name comes or goes unnoticed."""

METHODS = {
    tidegate.Lake: {
        "close",
        "create_table",
        "forget_table",
        "last_commit_version",
        "register_table",
        "table",
        "tables",
    },
    tidegate.Table: {
        "abort_transaction",
        "alter",
        "append",
        "as_of",
        "changes",
        "clone",
        "commit_bytes",
        "compute_statistics",
        "delete",
        "domain",
        "for_application",
        "generate_manifests",
        "head",
        "history",
        "insert",
        "merge",
        "optimize",
        "overwrite",
        "partition_columns",
        "read",
        "reorg",
        "replace",
        "restore",
        "scan",
        "schema",
        "sink",
        "transaction",
        "transaction_status",
        "txn_version",
        "update",
        "vacuum",
        "version",
    },
    tidegate.Transaction: {
        "abort",
        "action",
        "add",
        "commit",
        "commit_if_needed",
        "commit_large",
        "conflict_check",
        "explain",
        "filter_files",
        "has_actions",
        "has_read",
        "is_open",
        "landed",
        "metadata",
        "move_identity_marks",
        "read",
        "read_files",
        "read_version",
        "read_whole_table",
        "removals",
        "remove",
        "rows_of",
        "set_transaction",
        "state",
        "txn_version",
        "update_metadata",
        "was_proposed",
        "write_files",
    },
}


def imported_by(statement: str) -> set[str]:
    """The names of the top-level packages in a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_public_names_are_these():
    assert tidegate.__all__ == PUBLIC
    assert all(hasattr(tidegate, name) for name in PUBLIC)


def test_every_error_is_public():
    own = {
        name
        for name, kind in inspect.getmembers(tidegate.errors, inspect.isclass)
        if kind.__module__ == "tidegate.errors"
    }
    assert own <= set(PUBLIC)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_every_public_name_says_what_it_is(name):
    said = inspect.getdoc(getattr(tidegate, name))
    assert said
    # A dataclass without a docstring is given its signature as one.
    assert not said.startswith(f"{name}(")


@pytest.mark.parametrize(("kind", "methods"), METHODS.items())
def test_the_handles_do_this_and_say_what_it_is(kind, methods):
    ours = [cls for cls in kind.__mro__ if cls.__module__.startswith("tidegate.")]
    assert {name for cls in ours for name in vars(cls) if not name.startswith("_")} == methods
    assert [name for name in methods if not inspect.getdoc(getattr(kind, name))] == []


def test_the_version_is_the_distributions():
    assert tidegate.__version__ == version("tidegate")


def test_importing_it_alone_brings_none_of_the_heavy_ones():
    heavy = {"pyspark", "pyarrow", "pandas", "fastapi", "pydantic", "sqlalchemy", "psycopg"}
    found = imported_by("import tidegate")
    assert "httpx" in found, "the question was asked wrongly"
    assert found & (heavy | {"tidegate_service", "tidegate_migrations"}) == set()


def test_spark_is_there_when_it_is_first_used():
    assert "pyspark" not in imported_by("import tidegate")
    code = "import tidegate\nprint(tidegate.spark.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tidegate.spark"


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="sparks"):
        _ = tidegate.sparks
