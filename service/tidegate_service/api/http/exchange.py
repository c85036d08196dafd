"""One request and its answer.

A defect becomes a 500 problem, and an overrun deadline a 503.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from http import HTTPStatus

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.answered import CLIENT_GONE, answered
from tidegate_service.api.http.deadlines import Deadline, Deadlines
from tidegate_service.api.http.problems.problems import AnswerBrokenOff, of_service_error, problem
from tidegate_service.api.http.request.heads import Headers, address_of, is_proxied
from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import SCOPE_KEY, Gate, RequestState
from tidegate_service.api.http.strangers import Lines, Strangers
from tidegate_service.core.access.addresses import source_of
from tidegate_service.core.errors import Refused, Unavailable, root_cause
from tidegate_service.core.observe.telemetry import Telemetry

defect_log = logging.getLogger("tidegate.defect")

_NOT_PACED = {*range(HTTPStatus.BAD_REQUEST), HTTPStatus.TOO_MANY_REQUESTS}
"""What is no refusal, and what is told of too many requests: one that waits makes them more."""
_QUIET_HEADER = (b"x-content-type-options", b"nosniff")
_CLOSING_HEADER = (b"connection", b"close")

SLICE_BYTES = 256 * 1024
"""Most of an answer that is handed to its connection at once."""
ANSWER_BYTES = 1024 * 1024
"""An answer goes on for as long as so much of it is made, and read, within the deadline."""


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        limits: Limits,
        gate: Gate,
        lines: Lines,
        max_bytes: int,
        usual: Deadlines,
        long: Deadlines,
        state: RequestState,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self._gate = gate
        self._lines = lines
        self._has_waited = False
        self._max_bytes = max_bytes
        self._usual = usual
        self._long = long
        self._started = time.perf_counter()
        self._received = 0
        self._sent = 0
        self._status: int | None = None
        self._complete = False
        self._deadline: Deadline | None = None
        self.state = scope[SCOPE_KEY] = state

    async def run(self, app: ASGIApp, line: Strangers | None) -> None:
        """Have it answered, once it has its turn in the line of those that are nobody's."""
        self._deadline = deadline = Deadline()
        self.state.take_long = lambda: deadline.within(self._long)
        self.state.begin_anew = lambda: deadline.within(self._usual)
        deadline.within(self._usual)
        try:
            if line is not None and not await self._entered(line):
                return
            await app(self._scope, self.receive, self.send)
        except TimeoutError as error:
            if deadline.was_reached():
                await self._overrun()
            else:
                await self._defect(error)
        except asyncio.CancelledError:
            if deadline.was_reached():
                await self._overrun()
                return
            # Only a stopping instance cancels a request, when it can wait no longer.
            if self._status is None:
                await self._cut_off()
            raise
        except AnswerBrokenOff as broken:
            self.state.problem, self.state.detail = broken.cause.code, broken.cause.detail
            self.state.cause = root_cause(broken.cause)
        except ClientDisconnect:
            self._status = CLIENT_GONE
        except Exception as error:
            await self._defect(error)
        finally:
            self._end_deadline()

    async def _entered(self, line: Strangers) -> bool:
        self._has_waited = True
        try:
            await line.enter(address_of(self._scope), self.state.at_end)
        except Unavailable as refused:
            closing = {"Connection": "close"} if await self._ends_crowded() else None
            await self._answer(problem(self.state, refused.code, refused.detail, headers=closing))
            return False
        return True

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._max_bytes:
                raise self.too_large()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            ends = False
            if self.state.principal is None:
                ends = not await self._nobodys()
            elif message["status"] not in _NOT_PACED:
                await self._gate.begin_refusal(self.state)
            self._gate.end_read(self.state)
            self._status = message["status"]
            self._grant()
            message["headers"] = [
                *message["headers"],
                _QUIET_HEADER,
                (b"x-request-id", self.state.id.encode("ascii")),
                *([_CLOSING_HEADER] if ends else []),
            ]
        elif message["type"] == "http.response.body":
            self._complete = not message.get("more_body", False)
            message = await self._in_slices(message)
            self._count(message)
        await self._send(message)

    async def _nobodys(self) -> bool:
        """It is answered, and was nobody's: unread, it takes no place of anybody's, and whoever
        asks again at once waits. False where there is no room to wait, and the connection is to
        end."""
        self._gate.uncount(self.state)
        if self._has_waited or self._gate.closed:
            return True
        self._has_waited = True
        try:
            await self._lines.others.wait(address_of(self._scope))
        except Unavailable:
            return not await self._ends_crowded()
        return True

    async def _ends_crowded(self) -> bool:
        """Whether the connection is to end, since there was no room to wait: those that come anew
        begin in turns. A proxy's is not, as others ask on it next: what it is told has turns."""
        if not is_proxied(self._scope):
            return True
        await self._lines.crowded.begin(source_of(address_of(self._scope)))
        return False

    async def _in_slices(self, message: Message) -> Message:
        """Send all but the last slice of the body, each once the one before has been taken: the
        request is under way, and counted, for as long as much of its answer is held."""
        body = message.get("body", b"")
        if len(body) <= SLICE_BYTES:
            return message
        # Of one that many are sent, no copies are made for each of them.
        body = memoryview(body)
        last = (len(body) - 1) // SLICE_BYTES * SLICE_BYTES
        for start in range(0, last, SLICE_BYTES):
            piece = {**message, "body": body[start : start + SLICE_BYTES], "more_body": True}
            self._count(piece)
            await self._send(piece)
        return {**message, "body": body[last:]}

    def _count(self, message: Message) -> None:
        sent = self._sent + len(message.get("body", b""))
        if sent // ANSWER_BYTES > self._sent // ANSWER_BYTES:
            self._grant()
        self._sent = sent

    def _grant(self) -> None:
        """The answer has its deadline once more, unless it goes on for too long."""
        seconds = time.perf_counter() - self._started
        if self._deadline is not None and seconds < self._limits.long_deadline_s:
            self._deadline.within(self._usual)

    def leave(self) -> None:
        """Give back what the request held while it was under way."""
        self._gate.uncount(self.state)
        self._gate.end_read(self.state)
        with contextlib.ExitStack() as all_of_it:
            # In their order, and each, whatever another one raises.
            for give_back in reversed(self.state.at_end):
                all_of_it.callback(give_back)

    def announces_too_much(self, headers: Headers) -> bool:
        length = headers.get(b"content-length", b"")
        # Twenty digits are more than any 64-bit length has.
        return length.isdigit() and int(length[:20]) > self._max_bytes

    def wrong_host(self) -> Refused | None:
        """Why the request is not for this service, if it is not."""
        try:
            self._limits.hosts.check(self._scope)
        except Refused as refused:
            return refused
        return None

    async def refuse(self, refused: Refused) -> None:
        await self._answer(of_service_error(self.state, refused))

    async def refuse_closed(self) -> None:
        await self._answer(
            problem(
                self.state,
                Code.SHUTTING_DOWN,
                "this instance is stopping and takes nothing new; nothing was done",
                headers={"Connection": "close"},
            )
        )

    async def refuse_crowded(self) -> None:
        limit = self._limits.max_requests
        detail = f"{limit} requests are under way, as many as are taken; nothing was done"
        await self._answer(problem(self.state, Code.BACKPRESSURE, detail))

    async def _overrun(self) -> None:
        waited = f"there was no answer within {self._limits.deadline_s:g} s"
        if self.state.may_land:
            code = Code.COMMIT_STATE_UNKNOWN
            detail = f"{waited}; send the same transaction again, or ask for its status"
        else:
            code = Code.DEADLINE_EXCEEDED
            detail = f"{waited}; it may have been done all the same: ask, or send it again"
        if self._status is None:
            await self._answer(problem(self.state, code, detail))
        else:
            # The server closes the connection of an answer that breaks off.
            self.state.problem, self.state.detail = code, "the rest of the answer took too long"

    async def _cut_off(self) -> None:
        code = Code.COMMIT_STATE_UNKNOWN if self.state.may_land else Code.SHUTTING_DOWN
        detail = (
            "this instance stopped before there was an answer; it may have been done all the "
            "same: send the same request again, to another instance or after the restart"
        )
        await self._answer(problem(self.state, code, detail, headers={"Connection": "close"}))

    async def _defect(self, error: Exception) -> None:
        error_id = uuid.uuid4().hex
        defect_log.error("unhandled exception", exc_info=error, extra={"error_id": error_id})
        if self._status is None:
            detail = "the service met a defect of its own; its log has it under the error id"
            if self.state.may_land:
                detail += "; whether the transaction landed is told by sending it again"
            await self._answer(problem(self.state, Code.INTERNAL_ERROR, detail, error_id=error_id))
        else:
            self.state.problem = Code.INTERNAL_ERROR

    async def _answer(self, response: Response) -> None:
        # Outside the deadline: it is over, or was never entered.
        self._end_deadline()
        await response(self._scope, self._receive, self.send)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.end()
            self._deadline = None

    def too_large(self) -> Refused:
        return Refused(
            f"the body is larger than {self._max_bytes} bytes",
            code=Code.TOO_LARGE,
            hint="split the work into several transactions",
        )

    def log(self, telemetry: Telemetry) -> None:
        """The request's metrics, and the one line that says what came of it."""
        answered(
            self._scope,
            self.state,
            telemetry,
            status=self._status,
            complete=self._complete,
            seconds=time.perf_counter() - self._started,
        )
