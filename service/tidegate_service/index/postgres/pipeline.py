"""Statements sent to Postgres together: one way there and back for all of them.

psycopg's own pipelines talk to the socket at every statement and wait at every result, which for
the few small statements of a commit costs more than the database takes. This uses psycopg's wrapper
of libpq (`psycopg.pq`) alone: queue everything, send it, read until the server says that it was
all. Rows come in the binary format, as bytes.

https://www.postgresql.org/docs/current/libpq-pipeline-mode.html
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from tidegate_service.index.postgres.parameters import Parameter

Driver = psycopg.AsyncConnection[Any]
Row = tuple[bytes | None, ...]

_BEGIN = (
    # Whatever the server's own default is: a lock's holder has to see what it waited for.
    b"BEGIN ISOLATION LEVEL READ COMMITTED",
    # Planning a statement of a few rows costs several times what executing it does. Left alone,
    # Postgres plans each time: it knows how long an array is only then, takes it for longer
    # otherwise, and finds that too dear.
    b"SET LOCAL plan_cache_mode = force_generic_plan",
)
PLANNED_ANEW_S = 1.0
"""A plan is for a table as large as it was: where there was nothing yet, any index will do. None is
kept for longer than tables may take to outgrow it."""
_DISCARD_PLANS = b"DISCARD PLANS"

_ENDS = ("FATAL", "PANIC")
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


def as_uuid(value: bytes | None) -> UUID:
    """A value of a row that is never NULL."""
    return UUID(bytes=_there(value))


def as_int(value: bytes | None) -> int:
    return int.from_bytes(_there(value), "big", signed=True)


def as_bool(value: bytes | None) -> bool:
    return _there(value) == b"\1"


def as_text(value: bytes | None) -> str:
    return _there(value).decode()


def _there(value: bytes | None) -> bytes:
    if value is None:
        raise TypeError("a column that is never NULL is")
    return value


class Statement:
    """SQL with `$1`, `$2`, ... for its parameters; prepared once on each connection."""

    __slots__ = ("name", "text")

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.name = b"tidegate_" + sha256(self.text).hexdigest()[:24].encode()


class Query:
    """A statement and its parameters."""

    __slots__ = ("parameters", "statement")

    def __init__(self, statement: Statement, *parameters: Parameter) -> None:
        self.statement = statement
        self.parameters = parameters


class _Session:
    """What a connection has prepared, and until when its plans are good."""

    __slots__ = ("planned_until", "prepared")

    def __init__(self) -> None:
        self.prepared: set[bytes] = set()
        self.planned_until = 0.0

    def beginning(self) -> Iterator[bytes]:
        """The statements that begin a transaction."""
        yield from _BEGIN
        now = time.monotonic()
        if now >= self.planned_until:
            yield _DISCARD_PLANS
            self.planned_until = now + PLANNED_ANEW_S


_SESSIONS: WeakKeyDictionary[Driver, _Session] = WeakKeyDictionary()


async def read(driver: Driver, query: Query) -> list[Row]:
    """The rows of a query that is all of its transaction: giving the connection back then needs no
    way to the server and back. Raises as `run` does."""
    (rows,) = await run(driver, [query], last=True)
    return rows


async def run(driver: Driver, queries: Sequence[Query], *, last: bool = False) -> list[list[Row]]:
    """The rows of each query, in order, in the connection's transaction, which is begun where
    there is none, and ends with the `last` ones. Raises `psycopg.Error`: the first failure,
    whatever comes after it is not done.

    After a failure, or where this is cancelled, the connection is of no use any more.
    """
    connection = driver.pgconn
    session = _SESSIONS.setdefault(driver, _Session())
    prepared = session.prepared
    connection.enter_pipeline_mode()
    before = 0
    if connection.transaction_status == TransactionStatus.IDLE:
        for statement in session.beginning():
            connection.send_query_params(statement, None)
            before += 1
    new: list[bytes] = []
    places: list[int] = []
    for query in queries:
        name = query.statement.name
        if name not in prepared and name not in new:
            oids = [parameter.oid for parameter in query.parameters]
            connection.send_prepare(name, query.statement.text, oids)
            new.append(name)
            before += 1
        connection.send_query_prepared(
            name,
            [parameter.data for parameter in query.parameters],
            [Format.BINARY] * len(query.parameters),
            result_format=Format.BINARY,
        )
        places.append(before)
        before += 1
    if last:
        connection.send_query_params(b"ROLLBACK", None)
    connection.pipeline_sync()
    results = await _answers(connection, ExecStatus.PIPELINE_SYNC)
    connection.exit_pipeline_mode()
    _check(results)
    prepared.update(new)
    return [_rows(results[place]) for place in places]


async def commit(driver: Driver) -> None:
    """COMMIT. Raises `psycopg.Error`, as for an outcome that is unknown also where Postgres has
    committed and warns of it: nobody waits for its synchronous standby any more."""
    connection = driver.pgconn
    if connection.transaction_status == TransactionStatus.IDLE:
        # Postgres would warn, and answer as if something had been committed.
        raise psycopg.errors.NoActiveSqlTransaction("there is no transaction to commit")
    warnings: list[str | None] = []
    ends: list[str | None] = []

    def told(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary)
        elif notice.severity_nonlocalized in _ENDS:
            ends.append(notice.message_primary)

    driver.add_notice_handler(told)
    try:
        _check_is_there(connection, ends)
        connection.send_query(b"COMMIT")
        results = await _answers(connection, None)
    finally:
        driver.remove_notice_handler(told)
    _check(results)
    if warnings:
        raise psycopg.errors.StatementCompletionUnknown(f"COMMIT warned: {warnings[0]}")
    if results[-1].command_status != b"COMMIT":
        raise psycopg.errors.InFailedSqlTransaction("the transaction had failed before")


def _check_is_there(connection: PGconn, ends: Sequence[str | None]) -> None:
    """Raise `TransactionRollback` where the server has ended the session; `ends` is what the notice
    handler was told of that. Once COMMIT was sent to such a session, nothing may tell any more
    which of the two came first."""
    try:
        connection.consume_input()
        # libpq takes what it has read for notices while it waits for no answer, and here.
        connection.is_busy()
    except psycopg.OperationalError as error:
        raise psycopg.errors.TransactionRollback("the session had ended") from error
    if ends:
        raise psycopg.errors.TransactionRollback(f"the session had ended: {ends[0]}")


def _check(results: Sequence[PGresult]) -> None:
    for result in results:
        if result.status in _FAILED:
            raise error_from_result(result)


def _rows(result: PGresult) -> list[Row]:
    columns = range(result.nfields)
    return [
        tuple([result.get_value(row, column) for column in columns])
        for row in range(result.ntuples)
    ]


async def _answers(connection: PGconn, last: ExecStatus | None) -> list[PGresult]:
    """All results, up to the one of the status `last`, or until there are none."""
    loop = asyncio.get_running_loop()
    socket = connection.socket
    reader = _Reader(connection, last, loop.create_future())
    sent = connection.flush() == 0
    loop.add_reader(socket, reader.readable)
    if not sent:
        loop.add_writer(socket, reader.writable)
    try:
        return await reader.done
    finally:
        if not reader.failed:
            loop.remove_reader(socket)
            if not sent:
                loop.remove_writer(socket)


class _Reader:
    def __init__(
        self, connection: PGconn, last: ExecStatus | None, done: asyncio.Future[list[PGresult]]
    ) -> None:
        self.done = done
        self.failed = False
        self._connection = connection
        self._socket = connection.socket
        self._last = last
        self._results: list[PGresult] = []

    def writable(self) -> None:
        try:
            if self._connection.flush() == 0:
                asyncio.get_running_loop().remove_writer(self._connection.socket)
        except psycopg.Error as error:
            self._fail(error)

    def readable(self) -> None:
        if self.done.done():
            return
        try:
            self._connection.consume_input()
            while not self._connection.is_busy():
                result = self._connection.get_result()
                if result is None:
                    # In a pipeline, the end of one statement's results.
                    if self._last is None:
                        self.done.set_result(self._results)
                        return
                    if self._connection.status != ConnStatus.OK:
                        raise psycopg.OperationalError("the connection is lost")
                    continue
                self._results.append(result)
                if result.status == self._last:
                    self.done.set_result(self._results)
                    return
        except psycopg.Error as error:
            self._fail(error)

    def _fail(self, error: psycopg.Error) -> None:
        """A connection that was ended has often been told why, before its end was noticed."""
        if self.done.done():
            return
        # At once: libpq may have closed the socket, and its number may be another one's next.
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        loop.remove_writer(self._socket)
        self.failed = True
        failed = [result for result in self._results if result.status in _FAILED]
        try:
            result = self._connection.get_result()
        except psycopg.Error:
            result = None
        if result is not None and result.status in _FAILED:
            failed.append(result)
        told = [error_from_result(result) for result in failed]
        self.done.set_exception(next((one for one in told if one.sqlstate is not None), error))
