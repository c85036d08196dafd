"""Loading the flights with several Spark writers at once, each a process."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo.writer import APPENDS, WRITERS

SPARK, DUCKDB = "spark", "duckdb"
ENGINES = {SPARK: "demo.writer", DUCKDB: "demo.duckdb_writer"}
"""Which module is the last writer, by the engine's name; all others are Spark's."""

SLICES = WRITERS * APPENDS


class WriterFailed(Exception):
    """A writer ended with an error; the message has the end of what it printed."""


def load(
    url: str,
    table: str,
    staged: Path,
    logs: Path,
    report: Callable[[int, Mapping[str, Any]], None],
    *,
    engine: str = SPARK,
) -> int:
    """Run the writers side by side and return the number of commits.

    `report(writer, told)` is called, from several threads, for every commit as it lands, with what
    the writer tells of it, and once before them, with `ready`, when the writer's session is up.
    """
    modules = [ENGINES[SPARK]] * (WRITERS - 1) + [ENGINES[engine]]
    processes = [
        _start([module, url, table, str(staged), str(number)], _log(logs, number))
        for number, module in enumerate(modules)
    ]
    with ThreadPoolExecutor(WRITERS) as pool:
        try:
            followed = [
                pool.submit(_follow, process, logs, number, report)
                for number, process in enumerate(processes)
            ]
            return sum(future.result() for future in followed)
        finally:
            # Before the pool is left, which waits for those who follow the writers.
            for process in processes:
                process.kill()
                process.wait()


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[str]:
    """A module with its arguments."""
    with log.open("w") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[1],
        )


def _follow(
    process: subprocess.Popen[str],
    logs: Path,
    number: int,
    report: Callable[[int, Mapping[str, Any]], None],
) -> int:
    assert process.stdout is not None
    commits = 0
    for line in process.stdout:
        told = json.loads(line)
        report(number, told)
        commits += "ready" not in told
    if process.wait() != 0:
        tail = _log(logs, number).read_text()[-2000:]
        raise WriterFailed(f"writer {number + 1} ended with {process.returncode}:\n{tail}")
    return commits


def _log(logs: Path, number: int) -> Path:
    return logs / f"writer-{number + 1}.log"
