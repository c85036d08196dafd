"""Work of a known size in a process beside a loop.

`python -m benchmarks.load.other_work MICROSECONDS` is the process.

For each byte on standard input it takes so much CPU time, and then answers with a byte.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]


class OtherWork:
    """Pieces of work that are begun and not waited for while fewer than `most` are left."""

    def __init__(self, process: "subprocess.Popen[bytes]", most: int) -> None:
        self._process = process
        self._most = most
        self._left = 0

    def begin(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b".")
        self._left += 1
        if self._left == self._most:
            self._process.stdout.read(1)
            self._left -= 1


@contextmanager
def other_work(cpu_us: float, *, most: int) -> Iterator[OtherWork]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.load.other_work", str(cpu_us)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            yield OtherWork(process, most)
        finally:
            process.kill()


def main(cpu_us: float) -> None:
    while asked := os.read(0, 1):
        until = time.process_time() + cpu_us / 1e6
        while time.process_time() < until:
            pass
        os.write(1, asked)


if __name__ == "__main__":
    main(float(sys.argv[1]))
