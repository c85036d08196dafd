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
