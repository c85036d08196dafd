"""One line of progress on a terminal, for work that takes long."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

AFTER_S = 2.0
"""Work that is done by then shows nothing."""
EVERY_S = 0.5
_USUAL_COLUMNS = 80

_line = threading.Lock()
"""Held by whoever draws: of works that are done at once, or within each other, the first one."""


@contextmanager
def progress(
    say: Callable[[], str | None],
    *,
    stream: TextIO | None = None,
    after_s: float = AFTER_S,
    every_s: float = EVERY_S,
) -> Iterator[None]:
    """While the block lasts, show what `say` says and how long it has taken, in one line of the
    stream (standard error), which is drawn again and again, and is gone at the end. Only a terminal
    is written to. `say` is called in a thread of its own; where it says None, somebody else has
    the line."""
    out = sys.stderr if stream is None else stream
    if not _is_terminal(out) or not _line.acquire(blocking=False):
        yield
        return
    drawing = _Drawing(say, out, after_s=after_s, every_s=every_s)
    thread = threading.Thread(target=drawing.run, name="tidegate-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        drawing.is_over.set()
        thread.join()
        _line.release()


class _Drawing:
    def __init__(
        self, say: Callable[[], str | None], out: TextIO, *, after_s: float, every_s: float
    ) -> None:
        self.is_over = threading.Event()
        self._say = say
        self._out = out
        self._after_s = after_s
        self._every_s = every_s
        self._began_s = time.monotonic()
        self._drawn = 0

    def run(self) -> None:
        try:
            pause_s = self._after_s
            while not self.is_over.wait(pause_s):
                self._draw(self._say())
                pause_s = self._every_s
            self._put("")
        except (OSError, ValueError):
            # The terminal is gone, or was closed. The work goes on.
            return

    def _draw(self, said: str | None) -> None:
        if said is None:
            self._drawn = 0
            return
        text = f"{said}, {time.monotonic() - self._began_s:.0f} s"
        self._put(text[: _columns(self._out) - 1])

    def _put(self, text: str) -> None:
        if not text and not self._drawn:
            return
        self._out.write(f"\r{text:<{self._drawn}}" + ("" if text else "\r"))
        self._out.flush()
        self._drawn = len(text)


def _is_terminal(out: TextIO | None) -> bool:
    try:
        return out is not None and out.isatty()
    except ValueError:
        # It was closed.
        return False


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS
