"""How the log is written: warnings at once, in order, and nothing is lost."""

import asyncio
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from select import PIPE_BUF

import msgspec
import pytest

from tidegate_service.logs import JsonFormatter, LineHandler


class Stream:
    """Keeps each write as it was made."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> None:
        self.writes.append(text)

    def flush(self) -> None:
        pass

    @property
    def said(self) -> list[list[str]]:
        """The events of each write."""
        return [[json.loads(line)["event"] for line in text.splitlines()] for text in self.writes]


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def logger(stream) -> Iterator[logging.Logger]:
    logger = logging.getLogger("test.log.lines")
    handler = LineHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield logger
    logger.removeHandler(handler)


class TestWrites:
    def test_a_warning_does_not_wait_and_what_waits_goes_first(self, logger, stream):
        async def main() -> None:
            logger.info("a")
            logger.warning("b")
            assert stream.said == [["a", "b"]]
            logger.info("c")
            await asyncio.sleep(0)

        asyncio.run(main())
        assert stream.said == [["a", "b"], ["c"]]

    def test_none_is_longer_than_a_pipe_takes_whole(self, logger, stream):
        async def main() -> None:
            for number in range(100):
                logger.info("x" * 200, extra={"number": number})
            logger.info("y" * 2 * PIPE_BUF)
            logger.info("z")

        asyncio.run(main())
        assert max(len(text) for text in stream.writes if "y" not in text) <= PIPE_BUF
        lines = "".join(stream.writes).splitlines()
        assert [json.loads(line).get("number") for line in lines[:100]] == list(range(100))
        assert len(lines) == 102

    def test_the_end_of_the_process_writes_what_waits(self):
        program = """
            import asyncio, logging, sys
            from tidegate_service.logs import configure
            configure("info")
            async def main():
                logging.getLogger("tidegate").info("last words")
                sys.exit(3)
            asyncio.run(main())
        """
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False
        )
        assert ended.returncode == 3
        assert [json.loads(line)["event"] for line in ended.stderr.splitlines()] == ["last words"]


class Event(msgspec.Struct, omit_defaults=True):
    event: str
    path: str | None = None


class TestStructs:
    def line(self, **fields: str) -> str:
        record = logging.LogRecord("test", logging.INFO, "", 0, Event(**fields), (), None)
        return JsonFormatter().format(record)

    @pytest.mark.parametrize(
        "nasty", ['x\n{"level":"error"}\r\x1b[31m\x00', "\u2028\u202e", "\U0001f680é", "\ud800"]
    )
    def test_no_value_breaks_or_forges_a_line(self, nasty):
        written = self.line(event=nasty, path=nasty)
        assert written.isascii()
        assert written.isprintable()
        assert json.loads(written)["event"] == json.loads(written)["path"] == nasty
