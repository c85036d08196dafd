"""The clock that durations are measured by."""

import sys
import time


def elapsed_s() -> float:
    """Seconds since some moment, those in which the machine slept among them: whoever was held up
    has to see for how long. A virtual machine that its host paused without telling it, and a
    system that has no such clock, count nothing of that."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
