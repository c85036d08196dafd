"""What a session says of its writes, by Delta's settings, where their options do not."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidegate.spark.write.options import OptionValue

MERGE_SCHEMA = "spark.databricks.delta.schema.autoMerge.enabled"
OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite.enabled"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
PARTITION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
DEFAULT_PROPERTIES = "spark.databricks.delta.properties.defaults."

_OF_WRITES = {
    "mergeSchema": MERGE_SCHEMA,
    "optimizeWrite": OPTIMIZE_WRITE,
    "userMetadata": USER_METADATA,
}
_PROPERTIES = "delta."


def with_session(
    options: Mapping[str, OptionValue],
    spark: SparkSession,
    *,
    is_overwrite: bool = False,
    replace_where: str | None = None,
) -> dict[str, OptionValue]:
    """The options of a write, with what the session says of those that were not given.

    The session's mode of overwriting partitions is for an overwrite that says nothing else of what
    it replaces, and it does not merge the columns of a rewrite, which changes none.
    """
    given = {name.lower(): value for name, value in options.items()}
    found: dict[str, OptionValue] = {}
    for name, setting in _OF_WRITES.items():
        value = spark.conf.get(setting, None)
        if value is not None and name.lower() not in given:
            found[name] = value
    if str(given.get("datachange", True)).lower() == "false":
        found.pop("mergeSchema", None)
    says_what = given.keys() & {"partitionoverwritemode", "overwriteschema"}
    if is_overwrite and replace_where is None and not says_what:
        mode = spark.conf.get(PARTITION_OVERWRITE_MODE, None)
        if mode is not None:
            found["partitionOverwriteMode"] = mode
    return found | dict(options)


def default_properties(spark: SparkSession) -> dict[str, str]:
    """The properties of new tables that the session has under
    `spark.databricks.delta.properties.defaults.`: `...defaults.appendOnly` is
    `delta.appendOnly`."""
    settings = spark.conf.getAll
    return {
        _PROPERTIES + name.removeprefix(DEFAULT_PROPERTIES): value
        for name, value in settings.items()
        if name.startswith(DEFAULT_PROPERTIES)
    }
