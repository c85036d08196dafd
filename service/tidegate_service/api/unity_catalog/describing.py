"""What routes of Unity Catalog's API say of themselves in the OpenAPI document.

Their bodies are another project's, described there (`open-source Unity Catalog, api/`); the
document here names the calls, and what a status says.
"""

from typing import Any

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE
from tidegate_service.api.http.request.requests import JSON

Responses = dict[int | str, dict[str, Any]]

DELTA = "unity-catalog-delta"
CLASSIC = "unity-catalog"
TAGS = [
    {
        "name": CLASSIC,
        "description": "Unity Catalog's API as stock engines call it: schemas and tables.",
    },
    {
        "name": DELTA,
        "description": "Its part for Delta: creating, loading and committing to "
        "catalog-managed tables.",
    },
]
_OBJECT: dict[str, Any] = {"schema": {"type": "object"}}
_SAID = {
    400: "It can never succeed as it is.",
    401: "A valid token is needed.",
    403: "The token does not allow it.",
    404: "There is no such table.",
    405: "The method is not allowed at this path.",
    409: "Somebody else was first, or what is required does not hold.",
    413: "It is larger than any request may be.",
    421: "The service is not to be called by this host name.",
    429: "Too many requests are waiting.",
    500: "Nothing is known of the outcome; ask again.",
    503: "Something that the service needs does not answer; ask again.",
}
_RETRY = {"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}}


def responses(what: str, *, status: int = 200, also: tuple[int, ...] = ()) -> Responses:
    """The success, and the refusals that every call can meet with those in `also`."""
    success: dict[str, Any] = {"description": what}
    if status != 204:
        success["content"] = {JSON: _OBJECT}
    documented: Responses = {status: success}
    for refused in sorted({400, 401, 413, 429, 500, 503, *also}):
        documented[refused] = {"description": _SAID[refused], "content": {JSON: _OBJECT}}
        if refused in (429, 503):
            documented[refused]["headers"] = _RETRY
    # A head that is too large is refused before anything is known of its path.
    documented[413]["content"] = {JSON: _OBJECT, PROBLEM_MEDIA_TYPE: _OBJECT}
    return documented


def body(example: dict[str, Any]) -> dict[str, Any]:
    """A required JSON body, by an example."""
    content = {JSON: {**_OBJECT, "examples": {"usual": {"summary": "Usual", "value": example}}}}
    return {"requestBody": {"required": True, "content": content}}
