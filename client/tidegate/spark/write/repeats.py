"""Doing a whole write again after a conflict, as often as its caller asks for."""

from collections.abc import Callable
from typing import TypeVar

from tidegate.errors import ConflictError, InvalidRequest
from tidegate_protocol.base.problems import Code

T = TypeVar("T")


def repeated(work: Callable[[], T], *, retries: int, clock_s: Callable[[], float]) -> T:
    """What the work returns, which is done again after each conflict, `retries` times at most.

    It has to begin anew by itself: at the latest version, with nothing of the attempt before. The
    last conflict is raised with a note of how many attempts there were, with which versions they
    conflicted, and how long they took. Raises `InvalidRequest` for a number below 0.
    """
    if retries < 0:
        raise refused(f"expected a number of retries from 0 on, found {retries}")
    started_s = clock_s()
    versions: list[str] = []
    while True:
        try:
            return work()
        except ConflictError as error:
            winner = None if error.conflict is None else error.conflict.version
            versions.append("unknown" if winner is None else str(winner))
            if len(versions) <= retries:
                continue
            if retries:
                error.add_note(
                    f"Given up after {len(versions)} attempts in {clock_s() - started_s:.1f} s, "
                    f"which conflicted with the versions {', '.join(versions)}."
                )
            raise


def refused(detail: str) -> InvalidRequest:
    """The error for a write that cannot be done again as it is."""
    return InvalidRequest(detail, code=Code.INVALID_REQUEST, definite=True)
