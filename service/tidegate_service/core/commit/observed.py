"""Measuring how a proposal ended."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import (
    NotFound,
    OutcomeUnknown,
    Refused,
    ServiceError,
    Unavailable,
)
from tidegate_service.core.observe.telemetry import Outcome, Phase, Telemetry

T = TypeVar("T")

Ended = tuple[Outcome, Code | None]
"""How a proposal ended, and with which problem."""


async def observed(
    telemetry: Telemetry,
    propose: Callable[[], Awaitable[T]],
    *,
    catalog_managed: bool,
    ended: Callable[[T], Ended],
) -> T:
    """What `propose` returns or raises. Telemetry is told of it, and of the time that it took."""
    outcome, code = Outcome.DEFECT, None
    try:
        with telemetry.phase(Phase.TOTAL):
            result = await propose()
        outcome, code = ended(result)
        return result
    except ServiceError as error:
        outcome, code = _of_error(error), error.code
        raise
    finally:
        telemetry.decided(outcome, catalog_managed=catalog_managed, code=code)


def _of_error(error: ServiceError) -> Outcome:
    match error:
        case OutcomeUnknown():
            return Outcome.UNKNOWN
        case Refused() | NotFound():
            return Outcome.REFUSED
        case Unavailable():
            return Outcome.UNAVAILABLE
        case _:
            return Outcome.DEFECT
