"""Stock Delta Spark as a process of its own, which knows nothing of the service.

Delta's newest release is built for a Spark before the one that the client is tested with, and
does not run on that. So it gets the PySpark of its own, in the user's cache folder.
"""

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.maven import jars
from tidegate import Table

DELTA = "io.delta:delta-spark_2.13:4.4.0"
PYSPARK = "pyspark==4.2.0"
INSTALL_S = 300.0
# What else the jar names as its needs, Spark has.
_OURS = ("delta-", "unitycatalog-")
_WRITER = Path(__file__).with_name("spark_writer.py")


class ForeignSpark:
    """A Spark session with Delta that does one thing at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def sql(self, statement: str, table: Table) -> list[tuple[Any, ...]]:
        """Run it, with `{table}` in it replaced by the table's place, and return its rows. Raises
        `AssertionError` with what Spark says where it fails."""
        return self.run(statement.format(table=f"delta.`{table.location}`"))

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """The same for a statement as it is."""
        return self._rows(statement)

    def stream(self, folder: Path, schema: str, checkpoint: Path, name: str) -> None:
        """Stream a folder's JSON files into the table of that name, a file a batch, up to those
        that are there."""
        places = {"folder": str(folder), "checkpoint": str(checkpoint)}
        self._rows({**places, "schema": schema, "table": name})

    def transact(self, schedule: Mapping[str, Any]) -> dict[str, Any]:
        """Run transactions of Delta's own: what `spark_transactions.py` answers."""
        came: dict[str, Any] = self._ask(schedule)["came"]
        return came

    def _rows(self, asked: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._ask(asked)["rows"]]

    def _ask(self, asked: object) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the foreign Spark ended"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer


@contextmanager
def foreign_spark(
    folder: Path, settings: Mapping[str, str] | None = None, more_jars: Sequence[Path] = ()
) -> Iterator[ForeignSpark]:
    """Run one with Spark settings and jars more than it needs; `folder` is for what it prints.
    Skips the test where it cannot be had."""
    found = [str(jar) for jar in jars(DELTA) if jar.name.startswith(_OURS)]
    found += map(str, more_jars)
    environment = {**os.environ, "PYTHONPATH": str(_installed())}
    arguments = [str(_WRITER), ",".join(found), str(folder), json.dumps(settings or {})]
    with (folder / "foreign-spark.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            cwd=folder,
        )
        try:
            yield ForeignSpark(process)
        finally:
            process.kill()
            process.wait()


def _installed() -> Path:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tidegate")
    cached.mkdir(parents=True, exist_ok=True)
    folder = cached / PYSPARK.replace("==", "-")
    with (cached / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cached) as place:
                _install(Path(place) / "packages")
                (Path(place) / "packages").rename(folder)
    return folder


def _install(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), PYSPARK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"needs {PYSPARK}, which was not installed within {INSTALL_S:.0f} seconds")
    if done.returncode != 0:
        pytest.skip(f"needs {PYSPARK}: {done.stderr.strip()[-300:]}")
