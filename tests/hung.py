"""What hung: a test that runs into its timeout shows the tasks of asyncio that had not ended.

The stack of the thread, which pytest-timeout shows, ends in the event loop's select; and a moment
later the loop has cancelled them.
"""

import asyncio
import sys
from contextlib import suppress

import pytest
import pytest_timeout


def pytest_configure(config: pytest.Config) -> None:
    of_threads = pytest_timeout.dump_stacks

    def dump_stacks(terminal: object) -> None:
        of_threads(terminal)
        # Where no loop runs in this thread, there are none.
        with suppress(RuntimeError):
            for task in asyncio.all_tasks():
                task.print_stack(file=sys.stdout)

    pytest_timeout.dump_stacks = dump_stacks
