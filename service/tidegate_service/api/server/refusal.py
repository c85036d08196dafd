"""What a connection is told that is refused before there is a request of it."""

import logging
import uuid
from http import HTTPStatus

import msgspec

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEMS, Code
from tidegate_service.api.http.problems.problems import USUAL_RETRY_AFTER_S, problem_body

access_log = logging.getLogger("tidegate.access")


def refusal(code: Code, detail: str) -> bytes:
    """The whole answer, which ends the connection. It gets no further than this, so the edge writes
    no line of it: one is written here."""
    status = HTTPStatus(PROBLEMS[code].status)
    request_id = uuid.uuid4().hex
    body = msgspec.json.encode(problem_body(code, detail, instance=request_id))
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {PROBLEM_MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        f"X-Request-Id: {request_id}\r\n"
    )
    if PROBLEMS[code].retryable:
        head += f"Retry-After: {USUAL_RETRY_AFTER_S}\r\n"
    access_log.info(
        "request",
        extra={
            "request_id": request_id,
            "status": status.value,
            "code": code.value,
            "detail": detail,
        },
    )
    return head.encode("ascii") + b"\r\n" + body
