"""Files copied from one place to another."""

import os
import shutil

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.spark.errors import StorageError
from tidegate.spark.storage.hadoop import configuration_of, java_class, jvm_of, storage_errors
from tidegate.spark.storage.locations import LOCAL, arrow_path, scheme_of


def copy_file(spark: SparkSession, source: str, target: str, *, size: int) -> None:
    """Copy a file of so many bytes to a URL that nothing is at; both are as `hadoop_url` spells
    them. Raises `StorageError` where the copy has another size, and what the storage raises."""
    if scheme_of(source) == scheme_of(target) == LOCAL:
        found = _copied_here(arrow_path(source), arrow_path(target))
    else:
        found = _copied_by_hadoop(spark, source, target)
    if found != size:
        raise StorageError(f"expected {size} bytes of {source}, by the log, found {found}")


def _copied_here(source: str, target: str) -> int:
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        return os.path.getsize(target)
    except OSError as error:
        raise StorageError(f"{source} could not be copied to {target}: {error}") from error


def _copied_by_hadoop(spark: SparkSession, source: str, target: str) -> int:
    jvm, configuration = jvm_of(spark), configuration_of(spark)
    paths = [java_class(jvm, "org.apache.hadoop.fs.Path")(url) for url in (source, target)]
    copying = java_class(jvm, "org.apache.hadoop.fs.FileUtil")
    try:
        with storage_errors(jvm, target):
            systems = [path.getFileSystem(configuration) for path in paths]
            if scheme_of(target) == LOCAL:
                # The other one leaves a file with checksums beside each.
                systems[1] = systems[1].getRawFileSystem()
            copying.copy(systems[0], paths[0], systems[1], paths[1], False, configuration)
            return int(systems[1].getFileStatus(paths[1]).getLen())
    except Py4JError as error:
        raise StorageError(f"{source} could not be copied to {target}: {error}") from error
