"""Doing a whole write again after a conflict, as often as its caller asks for."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tidegate.errors import Attempts, ConflictError, InvalidRequest
from tidegate_protocol.base.problems import Code

T = TypeVar("T")

_AGAIN = (
    "do it again on the newer version; `retries`, an argument of the methods of `tidegate.Table`, "
    "does that for rows from elsewhere"
)
_AGAIN_LATER = "do it again on the newer version, with more retries or when fewer others write"

_LOG = logging.getLogger(__name__)

_REARRANGING = ("OPTIMIZE", "REORG")
"""Operations that leave a table's rows as they are."""
_MOST_REARRANGED = 20
"""Such commits that a command begins anew after: another one is a conflict."""


def repeated(work: Callable[[], T], *, retries: int, clock_s: Callable[[], float]) -> T:
    """What the work returns, which is done again after each conflict, `retries` times at most.

    It has to begin anew by itself: at the latest version, with nothing of the attempt before. The
    last conflict is raised with a note of how many attempts there were, with which versions they
    conflicted, and how long they took, which its `attempts` tell, too. Each time the log says so as
    a warning. Raises `InvalidRequest` for a number below 0.
    """
    check_retries(retries)
    started_s = clock_s()
    versions: list[int | None] = []
    while True:
        try:
            return work()
        except ConflictError as error:
            versions.append(None if error.conflict is None else error.conflict.version)
            if len(versions) <= retries:
                _LOG.warning(
                    "%s; done again, attempt %d of %d", _lost(error), len(versions) + 1, retries + 1
                )
                continue
            if retries:
                error.attempts = Attempts(
                    count=len(versions), seconds=clock_s() - started_s, versions=tuple(versions)
                )
                winners = ", ".join("unknown" if one is None else str(one) for one in versions)
                error.add_note(
                    f"Given up after {error.attempts}, which lost to the versions {winners}."
                )
            error.hint = _AGAIN if not retries else _AGAIN_LATER
            raise


def check_retries(retries: int) -> None:
    """Raise `InvalidRequest` for a number below 0."""
    if retries < 0:
        raise refused(f"expected a number of retries from 0 on, found {retries}")


def redone(work: Callable[[bool], T], *, retries: int, clock_s: Callable[[], float]) -> T:
    """As `repeated`, of a command that begins anew by itself where it lost to a commit which only
    rearranged rows: that counts as no attempt.

    The work is told whether it is, or may be, done again, and then refuses rows of the table's own
    (`own_rows_refused`). Where it finds that out too late, the conflict is raised.
    """
    left = _MOST_REARRANGED

    def attempt() -> T:
        nonlocal left
        lost: ConflictError | None = None
        while True:
            try:
                return work(retries > 0 or lost is not None)
            except OwnRowsRefused:
                if lost is None:
                    raise
                raise lost from None
            except ConflictError as error:
                winner = None if error.conflict is None else error.conflict.operation
                if winner not in _REARRANGING or not left:
                    raise
                left -= 1
                lost = error
                _LOG.warning("%s, which only moved rows; done again", _lost(error))

    return repeated(attempt, retries=retries, clock_s=clock_s)


def _lost(error: ConflictError) -> str:
    winner = "another commit" if error.conflict is None else error.conflict
    return f"a write has lost to {winner}"


class OwnRowsRefused(InvalidRequest):
    """A write that takes rows of its own table cannot be done again as it is."""


def own_rows_refused(table: str) -> OwnRowsRefused:
    """The error for retries of a write of the table's own rows."""
    return OwnRowsRefused(
        f"the DataFrame reads table {table} as of one version, and a retry is for a later one; "
        "expected retries only of rows from elsewhere",
        code=Code.INVALID_REQUEST,
        definite=True,
    )


def refused(detail: str) -> InvalidRequest:
    """The error for a write that cannot be done again as it is."""
    return InvalidRequest(detail, code=Code.INVALID_REQUEST, definite=True)
