"""The files of a deep clone: copies of its source's, in its own folder."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from tidegate.models import DataFile
from tidegate.spark.clone.source import CloneSource
from tidegate.spark.data_files.staging import TransactionFolder
from tidegate.spark.deletion_vectors.files import read_vectors
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.storage.copying import copy_file
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import decode, encode
from tidegate_protocol.schema.partition_values import partition_path

_THREADS = 16


def deep_files(
    source: CloneSource, folder: TransactionFolder, spark: SparkSession, *, now_ms: int
) -> Sequence[DataFile]:
    """Copy the source's files byte by byte into the folder, `_THREADS` at a time and through the
    driver; their deletion vectors are written anew.

    Raises `StorageError` for a copy that does not have the bytes that the log says, and what the
    storage raises.
    """
    files = source.files
    partition_columns = folder.layout.physical.partition_columns

    def copied(number: int) -> DataFile:
        file = files[number]
        plain = decode(file.path)
        where = partition_path(file.partition_values, partition_columns)
        # Another folder of the source may have a file of the same name.
        name = f"{number:05}-{plain.rpartition('/')[2]}"
        path = "/".join(filter(None, (folder.name, where, name)))
        copy_file(spark, source.layout.url(plain), folder.layout.url(path), size=file.size)
        return with_fields(file, {"path": encode(path), "modificationTime": now_ms})

    with Passes(spark, operation="CLONE", table=folder.layout.name) as passes:
        passes.copies(len(files))
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            copies = list(pool.map(copied, range(len(files))))
    marked = [n for n, file in enumerate(copies) if file.deletion_vector is not None]
    vectors = [v for n in marked if (v := copies[n].deletion_vector) is not None]
    written = folder.write_vectors(read_vectors(vectors, source.store(spark)))
    for number, vector in zip(marked, written, strict=True):
        copies[number] = with_fields(copies[number], {"deletionVector": vector})
    return copies
