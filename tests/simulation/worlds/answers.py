"""What the HTTP of a world is: outcomes of the use cases as answers, and answers decoded.

Statuses, codes and marks are the contract's (docs/problems.md); there are no bytes of requests.
"""

from dataclasses import dataclass

import msgspec

from tidegate.errors import UnexpectedAnswer
from tidegate.wire.exchange import Response
from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, PROBLEMS, Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome

_JSON = {"content-type": "application/json"}
_PROBLEM = {"content-type": PROBLEM_MEDIA_TYPE}


@dataclass(frozen=True, slots=True)
class Landed:
    """What a 2xx tells."""

    version: int
    timestamp: int
    replayed: bool


class _Told(msgspec.Struct, frozen=True):
    version: int
    timestamp: int
    replayed: bool


_TOLD = msgspec.json.Decoder(_Told)


def decode(response: Response) -> Landed:
    try:
        told = _TOLD.decode(response.body)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswer(str(error)) from None
    return Landed(told.version, told.timestamp, told.replayed)


def answer(result: Outcome | None, error: BaseException | None, *, request_id: str) -> Response:
    """What the edge makes of it. A defect is a 500."""
    match result, error:
        case Committed(record=record, replayed=replayed), None:
            told = _Told(record.version, record.timestamp, replayed)
            return Response(
                status=200 if replayed else 201,
                headers={**_JSON, "x-request-id": request_id},
                body=msgspec.json.encode(told),
            )
        case (Conflict() | Invalid()) as refused, None:
            return problem(refused.code, refused.detail, request_id)
        case NothingToCommit(), None:
            raise AssertionError("no client here proposes nothing")
        case _, ServiceError():
            return problem(error.code, error.detail, request_id)
        case _, TimeoutError():
            return problem(Code.DEADLINE_EXCEEDED, "the deadline", request_id)
        case _:
            return problem(Code.INTERNAL_ERROR, repr(error), request_id)


def problem(code: Code, detail: str, request_id: str) -> Response:
    kind = PROBLEMS[code]
    body = {
        "type": PROBLEM_TYPE_PREFIX + code.value,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code.value,
        "retryable": kind.retryable,
        "instance": request_id,
    }
    headers = {**_PROBLEM, "x-request-id": request_id}
    return Response(status=kind.status, headers=headers, body=msgspec.json.encode(body))


def of_a_gateway(status: int) -> Response:
    """What something between client and service says, with a body that has a `code`, too."""
    body = {"code": "upstream-conflict", "detail": "the gateway's own"}
    return Response(
        status=status,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
    )
