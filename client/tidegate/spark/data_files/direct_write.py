"""Spark's own Parquet writer without a rename: each file is written once, where it stays.

Hadoop's committers move files after they are written, which on an object store is a copy; those
that do not are in jars that Spark comes without. Spark's own sink of streaming queries has a
commit protocol that moves nothing, too: names are random, so that no two attempts of a task ever
write the same file, and a manifest says which files the attempts wrote that count. The sink takes
one batch as well as a stream of them.
"""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.storage.hadoop import JavaObject, active, java_class, jvm_of
from tidegate.spark.storage.locations import DataStore, StoredFile

# Where Spark has had it: it moved in version 4.1.
_SINKS = (
    "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
    "org.apache.spark.sql.execution.streaming.FileStreamSink",
)
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_PROTOCOL = "spark.sql.streaming.commitProtocolClass"
_MANIFEST_PROTOCOL = "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol"
_MANIFEST_FOLDER = "_spark_metadata"
_MANIFEST_VERSION = "v1"


def direct_sink(spark: SparkSession) -> JavaObject | None:
    """The class of the sink; None where this Spark has it elsewhere, or the session has another
    commit protocol for it."""
    if spark.conf.get(_PROTOCOL, _MANIFEST_PROTOCOL) != _MANIFEST_PROTOCOL:
        return None
    jvm = jvm_of(spark)
    found = (getattr(jvm, name) for name in _SINKS)
    return next((sink for sink in found if isinstance(sink, JavaClass)), None)


def write_directly(
    sink: JavaObject,
    df: DataFrame,
    url: str,
    *,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> None:
    """Write a batch below a URL that nothing was written to before, in one job.

    The job is none of a SQL execution: it shows up among Spark's jobs, not among its queries.
    """
    spark = df.sparkSession
    jvm = jvm_of(spark)
    convert = java_class(jvm, "org.apache.spark.api.python.PythonUtils")
    direct = sink(
        spark._jsparkSession,
        url,
        getattr(jvm, _FORMAT)(),
        convert.toSeq(list(partition_by)),
        convert.toScalaMap(dict(options)),
    )
    # The sink takes the plan that a DataFrame has made once, with the time and the rows of then.
    planned_anew = df.select("*")
    with active(spark):
        direct.addBatch(0, planned_anew._jdf)


def take_manifest(store: DataStore, folder: str, url: str) -> list[StoredFile]:
    """The files of the attempts that count. What other attempts left behind is deleted, and the
    manifest with it. `url` is that of the table's location, as Spark knows it."""
    found = store.files(folder)
    manifest = f"{folder}/{_MANIFEST_FOLDER}"
    (written,) = (file for file in found if file.path == f"{manifest}/0")
    version, *lines = store.content(written).decode().splitlines()
    if version != _MANIFEST_VERSION:
        raise AssertionError(f"expected a manifest of {_MANIFEST_VERSION}, found {version!r}")
    counted = {unquote(json.loads(line)["path"]).removeprefix(f"{url}/") for line in lines}
    files = [file for file in found if file.path in counted]
    if len(files) != len(counted):
        missing = counted - {file.path for file in files}
        raise AssertionError(f"the manifest names files that are not there: {sorted(missing)}")
    for file in found:
        if file.path not in counted and not file.path.startswith(f"{manifest}/"):
            store.delete(file.path)
    store.delete_folder(manifest)
    return files
