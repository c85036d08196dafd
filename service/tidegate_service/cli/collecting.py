"""How the interpreter of a process that serves divides its time."""

import gc
import sys

YOUNG = 20_000
"""Objects more than there were at the last look. Requests leave hardly any cycle behind, and each
look goes over all that are under way: with Python's 700 that is a seventh of a request's time."""

SWITCH_S = 0.0005
"""For so long a thread keeps the interpreter to itself while another one waits for it. With
Python's 5 ms, the event loop lets the database wait between two pieces of what a thread of a very
large commit has made: a tenth of the time of such a commit."""


def settle() -> None:
    """Once all is loaded and open: leave what is there out of every later look for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
    sys.setswitchinterval(SWITCH_S)
