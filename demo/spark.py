"""Spark sessions small enough to run several beside each other."""

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

SETTINGS_VARIABLE = "TIDEGATE_DEMO_SPARK"
"""What further settings every session of the demo has: a JSON object in the environment, because
secrets are among them."""

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""Spark's classes as `demo.classes` keeps them. Java takes no archive of another Java or other
jars, says so, and loads the classes itself."""

_WARNING = b"WARNING: Using incubator modules"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = (
    # Several Javas start at once on few cores. Compiling for the long run, and threads that collect
    # garbage, would be most of their work.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    # What Java says itself goes beside what writers print.
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
)


def java_options(further: Mapping[str, str], archive: Path = ARCHIVE) -> tuple[str, ...]:
    """Of a session with these further settings. Their jars are not among those of the archive."""
    if further or not archive.exists():
        return _JAVA_OPTIONS
    return (*_JAVA_OPTIONS, f'"-XX:SharedArchiveFile={archive}"')


def session(name: str, *, cores: int, further_java: tuple[str, ...] = ()) -> SparkSession:
    """A local session with this many cores, a gigabyte of memory and no web page."""
    further: Mapping[str, str] = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
    java = (*java_options(further), *further_java)
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(name)
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", " ".join(java))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores))
    )
    for setting, value in further.items():
        builder = builder.config(setting, value)
    with _without_warning():
        return builder.getOrCreate()


@contextmanager
def _without_warning() -> Iterator[None]:
    """A Java that starts meanwhile does not warn of the incubator module that Spark asks it for,
    which no setting of Java leaves out. All else that it writes to standard error is passed on."""
    read, write = os.pipe()
    stderr = os.dup(2)
    os.dup2(write, 2)
    os.close(write)

    def pass_on() -> None:
        with os.fdopen(read, "rb") as lines, os.fdopen(stderr, "wb", 0) as passed:
            for line in lines:
                if not line.startswith(_WARNING):
                    passed.write(line)

    reader = threading.Thread(target=pass_on, daemon=True)
    reader.start()
    try:
        yield
    except BaseException:
        os.dup2(stderr, 2)
        # What Java said of it comes first.
        reader.join(timeout=1)
        raise
    os.dup2(stderr, 2)
