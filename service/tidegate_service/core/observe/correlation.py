"""Which request the work at hand is done for: the ids that every line of the log carries.

The edge enters a request's ids here once. Whatever runs on behalf of the request, in tasks,
threads and commit sections that outlive it, finds them: context variables are copied along.
"""

from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(slots=True)
class Correlation:
    """The ids of one request; what is learnt on the way is filled in by whoever learns it.

    `table` is as the caller named it, `application_id` the Spark application that the caller
    says it is, `trace_id` of the trace it belongs to (32 hex digits). `share` is in whose name it
    holds its part of what all callers use (`core.sharing.shares`): None for nobody's.
    """

    id: str
    transaction_id: str | None = None
    table: str | None = None
    application_id: str | None = None
    trace_id: str | None = None
    share: str | None = None

    def fields(self) -> dict[str, str | None]:
        """As fields of a line of the log."""
        return {
            "request_id": self.id,
            "transaction_id": self.transaction_id,
            "table": self.table,
            "application_id": self.application_id,
            "trace_id": self.trace_id,
        }


_current: ContextVar[Correlation | None] = ContextVar("tidegate_correlation", default=None)


def enter(correlation: Correlation) -> None:
    """Make these the ids of everything that the current task does from now on."""
    _current.set(correlation)


def leave_share() -> None:
    """What the current task does from now on is done in nobody's name. Its ids stay."""
    known = _current.get()
    if known is not None:
        _current.set(replace(known, share=None))


def current() -> Correlation | None:
    """The ids of the request at hand; None in the background."""
    return _current.get()
