"""RFC 9457 problems: every exception and every refusing outcome, in one place.

A code's status, title and retryability stand in `tidegate_protocol.base.problems`; here is what
else a problem carries, and which exception becomes which code.
"""

from collections.abc import Sequence
from typing import Annotated, TypeVar
from urllib.parse import unquote

import msgspec
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, PROBLEMS, Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import CommitInfo, PartitionValues
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.api.http.problems import unity_problems
from tidegate_service.api.http.request.faces import Face
from tidegate_service.api.http.request.requests import JSON, RequestState
from tidegate_service.core.errors import CommitStateUnknown, Refused, ServiceError, root_cause

T = TypeVar("T")

RETRY_AFTER_S: dict[Code, int] = {
    Code.TABLE_QUARANTINED: 60,
    Code.SHUTTING_DOWN: 5,
    Code.DEADLINE_EXCEEDED: 2,
}
"""Seconds in Retry-After where a 429 or 503 has another than the usual one."""
USUAL_RETRY_AFTER_S = 1
LONGEST_DETAIL = 4096
"""In characters; what is longer is cut off, since it is logged, too."""
LONGEST_OF_WINNER = 200
"""In characters, of each text in the winner's commitInfo; what is longer is cut off."""

_CODE_OF_STATUS = {
    404: Code.ROUTE_NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    413: Code.TOO_LARGE,
    415: Code.UNSUPPORTED_MEDIA_TYPE,
}


class BodyError(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a request, and where."""

    where: Annotated[
        str,
        Meta(
            description="A JSON Pointer into the body (`/actions/3/add/path`; empty for the whole "
            "body), or `query/<name>` or `path/<name>`.",
            examples=["/reads/predicates/0"],
        ),
    ]
    why: str


class ConflictBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The commit that won, and what of it the transaction collides with."""

    version: Annotated[int, Meta(description="The winner's version.")]
    operation: str | None
    timestamp: Annotated[int, Meta(description="The winner's timestamp, in ms.")]
    application_id: Annotated[
        str | UnsetType, Meta(description="The Spark application that committed the winner.")
    ] = UNSET
    engine_info: Annotated[str | UnsetType, Meta(description="The winner's engineInfo.")] = UNSET
    user_metadata: Annotated[
        str | UnsetType, Meta(description="The beginning of the winner's userMetadata.")
    ] = UNSET
    path: str | UnsetType = UNSET
    partition: Annotated[
        PartitionValues | UnsetType,
        Meta(description="Partition column to its value as text; null is a null partition."),
    ] = UNSET
    app_id: str | UnsetType = UNSET
    domain: str | UnsetType = UNSET


class ProblemBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every answer that is not a success looks like (RFC 9457)."""

    type: Annotated[str, Meta(description="`urn:tidegate:problem:<code>`")]
    title: str
    status: int
    detail: Annotated[str, Meta(description="What was expected, what was found, what to do.")]
    code: Annotated[Code, Meta(description="The stable name of the problem, see docs/problems.md.")]
    retryable: Annotated[
        bool,
        Meta(
            description="Whether the same request may succeed later, without an operator's doing."
        ),
    ]
    instance: Annotated[
        str, Meta(description="The request's id: as `X-Request-Id` and in the service's log.")
    ]
    hint: Annotated[str | UnsetType, Meta(description="The next step.")] = UNSET
    error_class: Annotated[
        str | UnsetType,
        Meta(description="The name Delta Lake gives this conflict."),
    ] = UNSET
    conflict: ConflictBody | UnsetType = UNSET
    errors: Annotated[
        list[BodyError] | UnsetType, Meta(description="The parts of the request that are wrong.")
    ] = UNSET
    transaction_id: Annotated[
        str | UnsetType, Meta(description="The proposal's id, also where the service made it.")
    ] = UNSET
    version: Annotated[
        int | UnsetType,
        Meta(description="The version that the transaction has landed as, where it has."),
    ] = UNSET
    error_id: Annotated[
        str | UnsetType, Meta(description="Names the defect in the service's log.")
    ] = UNSET


class BadRequest(ServiceError):
    """422: parts of the request cannot be read; `errors` say which."""

    code = Code.INVALID_REQUEST

    def __init__(
        self, errors: Sequence[BodyError], *, code: Code | None = None, detail: str | None = None
    ) -> None:
        first = errors[0]
        place = f"{first.where}: " if first.where else ""
        super().__init__(detail or f"{place}{first.why}", code=code)
        self.errors = list(errors)


class AnswerBrokenOff(Exception):
    """An answer that had begun cannot be ended; the connection is closed in its middle."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(cause.detail)
        self.cause = cause


def problem_body(
    code: Code,
    detail: str,
    *,
    instance: str,
    hint: str | UnsetType = UNSET,
    conflict: ConflictBody | UnsetType = UNSET,
    errors: list[BodyError] | UnsetType = UNSET,
    transaction_id: str | UnsetType = UNSET,
    version: int | UnsetType = UNSET,
    error_id: str | UnsetType = UNSET,
) -> ProblemBody:
    """The body for a code."""
    kind = PROBLEMS[code]
    return ProblemBody(
        type=PROBLEM_TYPE_PREFIX + code.value,
        title=kind.title,
        status=kind.status,
        detail=detail,
        code=code,
        retryable=kind.retryable,
        instance=instance,
        hint=hint,
        error_class=_or_unset(kind.error_class),
        conflict=conflict,
        errors=errors,
        transaction_id=transaction_id,
        version=version,
        error_id=error_id,
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else text[:LONGEST_DETAIL] + "..."


def problem(
    state: RequestState,
    code: Code,
    detail: str,
    *,
    hint: str | None = None,
    conflict: ConflictBody | None = None,
    errors: Sequence[BodyError] = (),
    version: int | None = None,
    error_id: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """The response for a code, noted in the request's state for its log line."""
    kind = PROBLEMS[code]
    detail = _cut(detail)
    state.problem = code
    state.detail = detail
    body = problem_body(
        code,
        detail,
        instance=state.id,
        hint=_or_unset(hint),
        conflict=_or_unset(conflict),
        errors=[msgspec.structs.replace(error, why=_cut(error.why)) for error in errors] or UNSET,
        transaction_id=_or_unset(state.transaction_id),
        version=_or_unset(version),
        error_id=_or_unset(error_id),
    )
    all_headers = dict(headers or {})
    if code is Code.UNAUTHENTICATED:
        all_headers["WWW-Authenticate"] = 'Bearer realm="tidegate"'
    if kind.status in (429, 503):
        all_headers["Retry-After"] = str(RETRY_AFTER_S.get(code, USUAL_RETRY_AFTER_S))
    if state.face is not Face.OWN:
        return Response(
            unity_problems.body_of(state.face, code, detail),
            status_code=unity_problems.status_of(state.face, code),
            headers=all_headers,
            media_type=JSON,
        )
    return Response(
        msgspec.json.encode(body),
        status_code=kind.status,
        headers=all_headers,
        media_type=PROBLEM_MEDIA_TYPE,
    )


def of_service_error(state: RequestState, error: ServiceError) -> Response:
    if isinstance(error, CommitStateUnknown) and error.transaction_id is not None:
        state.transaction_id = error.transaction_id
    state.cause = root_cause(error)
    _without_frames(error)
    return problem(
        state,
        error.code,
        error.detail,
        hint=error.hint if isinstance(error, Refused) else None,
        version=error.version if isinstance(error, Refused) else None,
        errors=error.errors if isinstance(error, BadRequest) else (),
    )


def _without_frames(error: BaseException) -> None:
    """Let go of the frames that an error came through, in which its request's body is. Some of them
    have the task that ended with it, so only a collection would free them, which comes after so
    many objects (`cli.collecting`), and a body of megabytes is one."""
    # An error that was kept and is raised again may be the context of its own cause.
    seen = {id(error)}
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None:
            continue
        one.__traceback__ = None
        within = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        for other in (one.__cause__, one.__context__, *within):
            if id(other) not in seen:
                seen.add(id(other))
                left.append(other)


def of_conflict(state: RequestState, conflict: Conflict) -> Response:
    winner = conflict.winner
    info = winner.commit_info or CommitInfo()
    return problem(
        state,
        conflict.code,
        conflict.detail,
        hint=f"read the table again at version {winner.version} or later, do the work again on "
        "what is there then, and propose it under a new transaction id",
        conflict=ConflictBody(
            version=winner.version,
            operation=winner.operation,
            timestamp=winner.timestamp,
            application_id=_beginning(info.application_id),
            engine_info=_beginning(info.engine_info),
            user_metadata=_beginning(info.user_metadata),
            path=_or_unset(conflict.path),
            partition=_or_unset(conflict.partition),
            app_id=_or_unset(conflict.app_id),
            domain=_or_unset(conflict.domain),
        ),
    )


def _beginning(text: str | None) -> str | UnsetType:
    return UNSET if text is None else text[:LONGEST_OF_WINNER]


def of_invalid(state: RequestState, invalid: Invalid) -> Response:
    where = "" if invalid.action_index is None else f"/actions/{invalid.action_index}"
    errors = [] if not where else [BodyError(where=where, why=invalid.detail)]
    return problem(state, invalid.code, invalid.detail, errors=errors)


def of_http_exception(state: RequestState, error: HTTPException, path: str) -> Response:
    """The router's own refusals: an unknown path, a method that the path does not have."""
    code = _CODE_OF_STATUS.get(error.status_code)
    if code is None:
        raise error
    details = {
        Code.ROUTE_NOT_FOUND: f"there is nothing at {excerpt(path)}; /openapi.json lists the calls",
        Code.METHOD_NOT_ALLOWED: f"{excerpt(path)} does not take this method; see Allow",
    }
    return problem(
        state, code, details.get(code, str(error.detail)), headers=dict(error.headers or {})
    )


def of_validation(state: RequestState, error: RequestValidationError) -> Response:
    """Path and query parameters; bodies are read by `decoding`."""
    errors = [
        BodyError(
            where="/".join(str(part) for part in found["loc"]),
            why=f"{found['msg']}; found {excerpt(unquote(str(found.get('input'))))}",
        )
        for found in error.errors()
    ]
    return of_service_error(state, BadRequest(errors))


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value
