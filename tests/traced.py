"""What work takes in memory at the most. It has a process of its own: memory is traced of all
threads, and those that earlier tests have left may be at work."""

import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def traced(work: Callable[..., T], *args: object) -> tuple[T, int]:
    """What `work`, a function of a module, returns, and the bytes."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as process:
        return process.submit(_traced, work, args).result()


def _traced(work: Callable[..., T], args: tuple[object, ...]) -> tuple[T, int]:
    tracemalloc.start()
    result = work(*args)
    return result, tracemalloc.get_traced_memory()[1]
