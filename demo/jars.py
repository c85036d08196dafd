"""Jars that Spark comes without, fetched once a machine into the user's cache folder.

Apache Ivy, which Spark brings along, does it; from where, its settings say: those of its own, or
the file that TIDEGATE_IVY_SETTINGS names, for a machine behind a mirror.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

TIMEOUT_S = 300.0
SETTINGS_VARIABLE = "TIDEGATE_IVY_SETTINGS"
_HADOOP = re.compile(r"hadoop-client-api-(?P<version>.+)\.jar")
_PROBLEM = re.compile(r"not found|Server access error|Unable|refused|Exception", re.IGNORECASE)


class JarsUnavailable(Exception):
    """The jars could not be had; the message says why."""


def hadoop_aws() -> list[Path]:
    """What Spark needs for s3a://, of the version of the installed PySpark's Hadoop."""
    (client,) = _spark_jars().glob("hadoop-client-api-*.jar")
    found = _HADOOP.fullmatch(client.name)
    assert found is not None
    return fetched("org.apache.hadoop", "hadoop-aws", found["version"])


def fetched(group: str, name: str, version: str) -> list[Path]:
    """An artifact's jar and those that it needs at run time. Raises `JarsUnavailable`, after the
    first time at once."""
    outcome = _outcome(group, name, version)
    if isinstance(outcome, JarsUnavailable):
        raise outcome
    return sorted(outcome.glob("*.jar"))


@cache
def _outcome(group: str, name: str, version: str) -> Path | JarsUnavailable:
    """The folder with the jars, or why there is none."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidegate", "jars")
    folder = cached / f"{group}-{name}-{version}"
    try:
        cached.mkdir(parents=True, exist_ok=True)
        with (cached / "lock").open("w") as lock:
            # For whoever fetches the same at the same time.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                with tempfile.TemporaryDirectory(dir=cached) as place:
                    _fetch(group, name, version, Path(place))
                    # Whole or not at all, whenever this is ended.
                    (Path(place) / "jars").rename(folder)
    except OSError as error:
        return JarsUnavailable(f"{group}:{name}:{version}: {error}")
    except JarsUnavailable as unavailable:
        return unavailable
    return folder


def _fetch(group: str, name: str, version: str, place: Path) -> None:
    (ivy,) = _spark_jars().glob("ivy-*.jar")
    settings = os.environ.get(SETTINGS_VARIABLE)
    command = [
        *(_java(), "-jar", str(ivy)),
        *("-dependency", group, name, version, "-confs", "default", "-types", "jar", "bundle"),
        *("-cache", str(place / "ivy")),
        *("-retrieve", str(place / "jars" / "[artifact]-[revision].[ext]")),
        *(("-settings", settings) if settings else ()),
    ]
    coordinate = f"{group}:{name}:{version}"
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise JarsUnavailable(
            f"{coordinate} was not fetched within {TIMEOUT_S:.0f} seconds"
        ) from None
    if done.returncode != 0 or not (place / "jars" / f"{name}-{version}.jar").exists():
        problems = [line.strip() for line in done.stdout.splitlines() if _PROBLEM.search(line)]
        raise JarsUnavailable(
            f"{coordinate} could not be fetched: {problems[0] if problems else done.stdout[-300:]}"
        )


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        raise JarsUnavailable("no Java was found to fetch jars with")
    return java


def _spark_jars() -> Path:
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return Path(spark.origin).parent / "jars"
