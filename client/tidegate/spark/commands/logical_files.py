"""Files of two versions compared, and whether they are still there."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from tidegate.errors import InvalidRequest
from tidegate.models import DataFile
from tidegate.spark.deletion_vectors.files import is_inline, path_of
from tidegate.spark.storage.locations import DataStore
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import file_key
from tidegate_protocol.log.paths import decode

_IGNORE_MISSING = "spark.sql.files.ignoreMissingFiles"
_THREADS = 16
_TOLD = 10
"""Of the files that are missing."""


def without(files: Sequence[DataFile], others: Iterable[DataFile]) -> list[DataFile]:
    """The files that are not among the others. One with another deletion vector is another one."""
    known = {file_key(file) for file in others}
    return [file for file in files if file_key(file) not in known]


def ignores_missing(spark: SparkSession) -> bool:
    """Whether the session passes over files that are not there."""
    return str(spark.conf.get(_IGNORE_MISSING)).lower() == "true"


def check_there(files: Sequence[DataFile], store: DataStore, *, what: str) -> None:
    """Raise `InvalidRequest` where files, or their deletion vectors, were deleted. `store` is the
    one of the table that has them, and `what` is what they are the files of."""
    paths = [decode(file.path) for file in files]
    paths += {
        path_of(vector)
        for file in files
        if (vector := file.deletion_vector) is not None and not is_inline(vector)
    }
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        there = list(pool.map(store.exists, paths))
    missing = [path for path, is_there in zip(paths, there, strict=True) if not is_there]
    if missing:
        told = ", ".join(missing[:_TOLD])
        raise InvalidRequest(
            f"not all files of {what} are available: {len(missing)} were deleted, such as {told}",
            code=Code.INVALID_REQUEST,
            definite=True,
            hint="take a later version; or have the session leave out what is missing "
            f"({_IGNORE_MISSING} = true), and lose its rows",
        )
