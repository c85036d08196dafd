"""The command `tidegate`, run in a process of its own or in this one."""

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from tidegate_service import logs
from tidegate_service.cli.commands import cli

TIDEGATE = Path(sys.executable).with_name("tidegate")
START_S = 60
STOP_S = 15


def environment(**variables: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TIDEGATE_")}
    return {**inherited, **variables}


def tidegate(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TIDEGATE, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=START_S,
        stdin=subprocess.DEVNULL,
    )


def invoke(*arguments: object, **variables: str) -> Result:
    """The same in this process: starting one takes longer than most commands."""
    with _logging_as_it_was():
        return CliRunner().invoke(cli, [*map(str, arguments)], env=variables)


@contextmanager
def _logging_as_it_was() -> Iterator[None]:
    """A command sends the log of its process to a standard error that ends with the runner."""
    root = logging.getLogger()
    loggers = [root, *(logging.getLogger(name) for name in logs.QUIETED)]
    handlers, levels = root.handlers[:], [logger.level for logger in loggers]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def serving(
    *arguments: object, log: Path | None = None, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `tidegate serve` and what it printed before it took requests. Its log goes to a file
    where one is given: more than a pipe holds would have to be read all the time."""
    process = subprocess.Popen(
        [TIDEGATE, "serve", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if log is None else log.open("wb"),
        text=True,
        env=environment(**variables),
    )
    assert process.stdout is not None
    printed = ""
    while "warehouse" not in printed:
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        printed += line
    try:
        yield process, printed
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOP_S)


def url_in(printed: str) -> str:
    found = re.search(r"http://\S+", printed)
    assert found is not None
    return found.group()
