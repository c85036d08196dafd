"""The one edge where database failures become the service's own errors.

Told apart by exception class, SQLSTATE and constraint name, never by message text.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import exc

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import (
    IndexUnavailable,
    Refused,
    ServiceError,
    TableExists,
)
from tidegate_service.index.schema.tables import TABLES_LOCATION_KEY, TABLES_NAME_KEY

DriverError = psycopg.Error
"""Whatever a statement on the driver's own connection raises."""

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_LOCK_NOT_AVAILABLE = "55P03"
_QUERY_CANCELED = "57014"
_IDLE_IN_TRANSACTION = "25P03"
_TRANSACTION_TIMEOUT = "25P04"
_UNIQUE_VIOLATION = "23505"
_PROGRAM_LIMIT_EXCEEDED = "54000"
_NO_SUCH_RELATION = ("42P01", "42703", "3F000")
_DATA_EXCEPTION = "22"
_INTEGRITY = "23"
_SYNTAX_OR_ACCESS = "42"
_ROLLED_BACK = ("23", "40")
_COMPLETION_UNKNOWN = "40003"
_HAD_FAILED = "25P02"


@contextmanager
def translated() -> Iterator[None]:
    """Raise the service's error for a database failure inside; everything else passes."""
    try:
        yield
    except exc.DBAPIError as error:
        raise _of_driver(error.orig) from error
    except exc.TimeoutError as error:
        raise IndexUnavailable("no database connection became free in time") from error
    except psycopg.Error as error:
        raise _of_driver(error) from error
    except (TimeoutError, OSError) as error:
        raise IndexUnavailable("the index database does not answer") from error


def is_certain_rollback(error: BaseException) -> bool:
    """True where a failed COMMIT tells that nothing was committed.

    A constraint or serialization failure, the end of an idle transaction, and that it had failed
    before are reported before the commit. Anything else says nothing: above all a lost connection,
    but also a session that was ended, a proxy that does not know, and the end of a transaction
    that took too long, which may be noticed just behind its commit.
    """
    state = sqlstate(error)
    if state is None or state == _COMPLETION_UNKNOWN:
        return False
    return state[:2] in _ROLLED_BACK or state in (_IDLE_IN_TRANSACTION, _HAD_FAILED)


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's error, as such or wrapped by SQLAlchemy."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    return cause.sqlstate if isinstance(cause, psycopg.Error) else None


def violated_key(error: BaseException) -> str | None:
    """The unique constraint that a driver's error says is violated."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return error.diag.constraint_name
    return None


def _of_driver(error: BaseException | None) -> ServiceError:
    if not isinstance(error, psycopg.Error):
        return IndexUnavailable("the index database does not answer")
    state = error.sqlstate
    if state == _LOCK_NOT_AVAILABLE:
        return IndexUnavailable("another transaction held the table's lock for too long")
    if state == _QUERY_CANCELED:
        return IndexUnavailable("the index database took too long")
    if state == _IDLE_IN_TRANSACTION:
        return IndexUnavailable("the index database ended a commit that was idle for too long")
    if state == _TRANSACTION_TIMEOUT:
        return IndexUnavailable("the index database ended a transaction that took too long")
    if state == _UNIQUE_VIOLATION and error.diag.constraint_name == TABLES_NAME_KEY:
        return TableExists("a table of this name exists already")
    if state == _UNIQUE_VIOLATION and error.diag.constraint_name == TABLES_LOCATION_KEY:
        return TableExists("a table at this location exists already")
    if state in _NO_SUCH_RELATION:
        return IndexUnavailable(
            "the index database lacks this release's schema; run `tidegate migrate`"
        )
    # psycopg refuses some values itself, without a SQLSTATE.
    refused_value = isinstance(error, psycopg.DataError)
    if state == _PROGRAM_LIMIT_EXCEEDED or refused_value or (state or "")[:2] == _DATA_EXCEPTION:
        return Refused("a value is one that the index cannot hold", code=Code.INVALID_REQUEST)
    if state is not None and state[:2] in (_INTEGRITY, _SYNTAX_OR_ACCESS):
        # A fence of the schema, or a statement of ours that is wrong: a defect, not an outage.
        return ServiceError(
            f"the index refused a statement: SQLSTATE {state}, "
            f"constraint {error.diag.constraint_name}"
        )
    return IndexUnavailable("the index database does not answer")
