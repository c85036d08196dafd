"""Loading the flights with several Spark writers at once, each a process."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from demo.writer import APPENDS, WRITERS

SLICES = WRITERS * APPENDS


class WriterFailed(Exception):
    """A writer ended with an error; the message has the end of what it printed."""


def load(
    url: str, table: str, staged: Path, logs: Path, report: Callable[[int, int | None], None]
) -> int:
    """Run the writers side by side and return the number of commits.

    `report(writer, version)` is called, from several threads, for every commit as it lands, and
    once before them, without a version, when the writer's session is up.
    """
    processes = [_start(url, table, staged, logs, number) for number in range(WRITERS)]
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


def _start(url: str, table: str, staged: Path, logs: Path, number: int) -> subprocess.Popen[str]:
    with _log(logs, number).open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "demo.writer", url, table, str(staged), str(number)],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[1],
        )


def _follow(
    process: subprocess.Popen[str],
    logs: Path,
    number: int,
    report: Callable[[int, int | None], None],
) -> int:
    assert process.stdout is not None
    commits = 0
    for line in process.stdout:
        version = json.loads(line).get("version")
        report(number, version)
        commits += version is not None
    if process.wait() != 0:
        tail = _log(logs, number).read_text()[-2000:]
        raise WriterFailed(f"writer {number + 1} ended with {process.returncode}:\n{tail}")
    return commits


def _log(logs: Path, number: int) -> Path:
    return logs / f"writer-{number + 1}.log"
