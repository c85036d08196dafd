"""How often a process that serves looks for garbage that only cycles keep."""

import gc

YOUNG = 20_000
"""Objects more than there were at the last collection. Requests leave hardly any cycle behind, and
each collection goes over all that are under way: with Python's 700 that is a seventh of a
request's time."""


def spare_startup_objects() -> None:
    """Once all is loaded and open: leave what is there out of every later look."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
