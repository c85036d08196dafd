"""Problems as clients of Unity Catalog's API read them.

What a client does next depends on the status alone. Delta Spark sends a commit again for an hour
after a 401, a 403 or a status that it does not know, and tells its user nothing. After a 400 it
fails at once. So whatever refuses a commit for good is a 400.
"""

from typing import Any

import msgspec

from tidegate_protocol.base.problems import PROBLEMS, Code
from tidegate_service.api.http.request.faces import Face

_CONFLICTS = (Code.VERSION_TAKEN, Code.REQUIREMENT_FAILED)
_GONE = (Code.TABLE_NOT_FOUND, Code.ROUTE_NOT_FOUND)
_PASSED_ON = (401, 403, 404, 405, 409, 429)

_TYPES = {
    Code.TABLE_NOT_FOUND: "NoSuchTableException",
    Code.ROUTE_NOT_FOUND: "NotFoundException",
    Code.UNAUTHENTICATED: "NotAuthorizedException",
    Code.FORBIDDEN: "PermissionDeniedException",
    Code.TABLE_EXISTS: "AlreadyExistsException",
    Code.VERSION_TAKEN: "CommitVersionConflictException",
    Code.REQUIREMENT_FAILED: "UpdateRequirementConflictException",
    Code.BACKPRESSURE: "ResourceExhaustedException",
    Code.COMMIT_STATE_UNKNOWN: "CommitStateUnknownException",
    Code.INTERNAL_ERROR: "InternalServerErrorException",
}
_REASONS = {
    Code.TABLE_NOT_FOUND: "TABLE_NOT_FOUND",
    Code.ROUTE_NOT_FOUND: "NOT_FOUND",
    Code.UNAUTHENTICATED: "UNAUTHENTICATED",
    Code.FORBIDDEN: "PERMISSION_DENIED",
    Code.TABLE_EXISTS: "TABLE_ALREADY_EXISTS",
    Code.BACKPRESSURE: "RESOURCE_EXHAUSTED",
    Code.INTERNAL_ERROR: "INTERNAL",
}


def status_of(face: Face, code: Code) -> int:
    """The status that the code has on this face."""
    status = PROBLEMS[code].status
    if code is Code.COMMIT_STATE_UNKNOWN:
        return 500
    if face is Face.COMMIT:
        if code in _CONFLICTS:
            return 409
        if code in _GONE:
            return 404
        lasts = status < 500 and status != 429
        return 400 if lasts or code is Code.TABLE_QUARANTINED else status
    return status if status in _PASSED_ON or status >= 500 else 400


def body_of(face: Face, code: Code, detail: str) -> bytes:
    """The body: of the part for Delta, or of the classic one."""
    status = status_of(face, code)
    body: dict[str, Any]
    if face is Face.CLASSIC:
        usual = "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT"
        reason = _REASONS.get(code, usual)
        about = {"reason": reason, "@type": "google.rpc.ErrorInfo"}
        body = {"error_code": reason, "message": detail, "details": [about]}
    else:
        usual = "ServiceUnavailableException" if status >= 500 else "InvalidParameterValueException"
        body = {"error": {"message": detail, "type": _TYPES.get(code, usual), "code": status}}
    return msgspec.json.encode(body)
