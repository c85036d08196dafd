"""One line of progress, and only on a terminal."""

import io
import threading
from functools import partial

import pytest

from tidegate.progress import progress

QUICK = partial(progress, after_s=0.0, every_s=0.005)


class Terminal(io.StringIO):
    """Tells when something was written."""

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self.drawn = threading.Event()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def flush(self) -> None:
        self.drawn.set()


def screen(terminal: Terminal) -> list[str]:
    """What the line said, one after the other."""
    return [each.rstrip() for each in terminal.getvalue().split("\r")[1:]]


def test_a_line_is_drawn_and_gone_at_the_end():
    terminal = Terminal()
    with QUICK(lambda: "VACUUM of a.b.c", stream=terminal):
        assert terminal.drawn.wait(20)
    first, *_, cleared, last = screen(terminal)
    assert first == "VACUUM of a.b.c, 0 s"
    assert (cleared, last) == ("", "")
    assert "\n" not in terminal.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("stream", [Terminal(is_terminal=False), None], ids=["a pipe", "pytest's"])
def test_nothing_is_written_anywhere_else(stream, capsys):
    begun = threading.active_count()
    with QUICK(lambda: "a line", stream=stream):
        assert threading.active_count() == begun
    assert capsys.readouterr().err == ""
    assert stream is None or stream.getvalue() == ""


def test_what_is_quick_shows_nothing():
    terminal = Terminal()
    with progress(lambda: "a line", stream=terminal):
        pass
    assert terminal.getvalue() == ""


def test_a_terminal_that_is_gone_stops_nothing():
    class Gone(Terminal):
        def write(self, text: str) -> int:
            self.drawn.set()
            raise OSError("no terminal any more")

    terminal = Gone()
    with QUICK(lambda: "a line", stream=terminal):
        assert terminal.drawn.wait(20)


def test_an_error_is_let_through_and_the_line_is_gone():
    terminal = Terminal()

    def fail() -> None:
        with QUICK(lambda: "a line", stream=terminal):
            assert terminal.drawn.wait(20)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert screen(terminal)[-1] == ""
