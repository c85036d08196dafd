"""What a session says, by Delta's settings: of its writes where their options do not, and else."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.new_table import check_properties
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.storage.hadoop import java_class, jvm_of
from tidegate.spark.write_options import OptionValue
from tidegate_protocol.features.properties import canonical

T = TypeVar("T")

MERGE_SCHEMA = "spark.databricks.delta.schema.autoMerge.enabled"
OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite.enabled"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
TXN_IS_RESET = f"{TXN_VERSION}.autoReset.enabled"
PARTITION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
COMMIT_ATTEMPTS = "spark.databricks.delta.maxCommitAttempts"
DEFAULT_PROPERTIES = "spark.databricks.delta.properties.defaults."

_OF_WRITES = {
    "mergeSchema": MERGE_SCHEMA,
    "optimizeWrite": OPTIMIZE_WRITE,
    "userMetadata": USER_METADATA,
}
TXN = {"txnAppId": "spark.databricks.delta.write.txnAppId", "txnVersion": TXN_VERSION}
_PROPERTIES = "delta."
_OF_COMMITS = (USER_METADATA, *TXN.values(), TXN_IS_RESET, PARTITION_OVERWRITE_MODE)


def task_settings() -> dict[str, str]:
    """The settings of writes that a task's session has, by their names, without those that are
    about the rows. Spark gives the tasks of a query all settings of its SQL."""
    task = TaskContext.get()
    found = {} if task is None else {name: task.getLocalProperty(name) for name in _OF_COMMITS}
    return {name: value for name, value in found.items() if value is not None}


def with_session(
    options: Mapping[str, OptionValue],
    settings: Callable[[str], str | None],
    *,
    is_overwrite: bool = False,
    replace_where: str | None = None,
    is_batch: bool = False,
) -> dict[str, OptionValue]:
    """The options of a write, with what `settings`, the session's by name, say of those that were
    not given.

    A stream's batch is recorded under the stream's id, whatever `txnAppId` the session has. The
    session's mode of overwriting partitions is for an overwrite that says nothing else of what
    it replaces, and it does not merge the columns of a rewrite, which changes none.
    """
    given = {name.lower(): value for name, value in options.items()}
    found: dict[str, OptionValue] = {}
    has_own_txn = is_batch or given.keys() & {"txnappid", "txnversion"}
    wanted = _OF_WRITES if has_own_txn else _OF_WRITES | TXN
    for name, setting in wanted.items():
        value = settings(setting)
        if value is not None and name.lower() not in given:
            found[name] = value
    if str(given.get("datachange", True)).lower() == "false":
        found.pop("mergeSchema", None)
    if found.keys() & TXN.keys():
        # What cannot be read would be told once the write has landed.
        parsed(TXN_IS_RESET, settings(TXN_IS_RESET), boolean, False)
    replaces_schema = str(given.get("overwriteschema", False)).lower() == "true"
    says_what = "partitionoverwritemode" in given or replaces_schema
    if is_overwrite and replace_where is None and not says_what:
        mode = settings(PARTITION_OVERWRITE_MODE)
        if mode is not None:
            found["partitionOverwriteMode"] = mode
    return found | dict(options)


def settings_of(spark: SparkSession) -> Callable[[str], str | None]:
    """The session's settings, by name."""
    return lambda name: spark.conf.get(name, None)


def metadata_of(given: str | None, spark: SparkSession) -> str | None:
    """The user metadata of a commit: what was given, else what the session says."""
    return spark.conf.get(USER_METADATA, None) if given is None else given


def new_properties(spark: SparkSession, given: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table, known names as Delta spells them: those that are given, and
    for others those that the session has under `spark.databricks.delta.properties.defaults.`:
    `...defaults.appendOnly` is `delta.appendOnly`. Raises `InvalidRequest` for what no table can
    have."""
    names = {name.lower() for name in given}
    defaults = {
        _PROPERTIES + name.removeprefix(DEFAULT_PROPERTIES): value
        for name, value in _default_properties(spark).items()
        if name.startswith(DEFAULT_PROPERTIES)
    }
    others = {name: value for name, value in defaults.items() if name.lower() not in names}
    check_properties(others)
    check_properties(given)
    found = canonical(others) | canonical(given)
    check_properties(found)
    return found


def _default_properties(spark: SparkSession) -> dict[str, str]:
    """All settings where there may be some, which the JVM is asked for one by one."""
    settings = getattr(spark.conf, "_jconf", None)
    if settings is not None and DEFAULT_PROPERTIES not in settings.getAllAsJava().toString():
        return {}
    return spark.conf.getAll


class Settings:
    """The settings of a session, parsed. Raises `UnsupportedSession` for a value that one cannot
    have."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def get(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """The setting as `parse` has it, which raises `ValueError` with what it expects."""
        return parsed(name, self._spark.conf.get(name, None), parse, default)

    def size(self, text: str) -> int | None:
        """Bytes, as Spark reads sizes: `10g`."""
        utils = java_class(jvm_of(self._spark), "org.apache.spark.network.util.JavaUtils")
        try:
            found = int(utils.byteStringAsBytes(text))
        except (Py4JJavaError, PySparkException):
            found = 0
        if found <= 0:
            raise ValueError("a size above 0, such as 10g,")
        return found


def parsed(name: str, text: str | None, parse: Callable[[str], T], default: T) -> T:
    """The value of a setting, the default without a text. Raises as `Settings` does."""
    if text is None:
        return default
    try:
        return parse(str(text).strip())
    except ValueError as error:
        raise UnsupportedSession(
            f"expected {error} as the session's {name}, found {text!r}"
        ) from None


def at_least(least: int) -> Callable[[str], int]:
    """Whole numbers from `least` on."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse


def ratio(text: str) -> float:
    """A number from 0 to 1."""
    expected = ValueError("a number from 0 to 1")
    try:
        found = float(text)
    except ValueError:
        raise expected from None
    if not 0 <= found <= 1:
        raise expected
    return found


def boolean(text: str) -> bool:
    """True or false, in any case."""
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def above_zero(text: str) -> float:
    """A number above 0."""
    expected = ValueError("a number above 0")
    try:
        found = float(text)
    except ValueError:
        raise expected from None
    if not 0 < found < float("inf"):
        raise expected
    return found
