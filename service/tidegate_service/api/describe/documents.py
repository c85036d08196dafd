"""What routes say of themselves in the OpenAPI document."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, PROBLEMS, Code
from tidegate_service.api.answers.arrow import MEDIA_TYPE as ARROW
from tidegate_service.api.describe.examples import (
    INVENTORY_NDJSON,
    PROPOSAL_NDJSON,
    PROPOSALS,
    VACUUMS,
    Example,
)
from tidegate_service.api.http.request.requests import JSON, NDJSON

Responses = dict[int | str, dict[str, Any]]
Content = Mapping[str, Any]

LOCATION: Content = {"Location": {"description": "Its URL.", "schema": {"type": "string"}}}
LOG_FILE: Content = {NDJSON: {"schema": {"type": "string", "description": "An action a line."}}}
SCAN_STREAMS: Content = {
    NDJSON: {
        "schema": {
            "type": "string",
            "description": 'A `ScanHead` on the first line, then `{"add": {...}}` a line.',
        }
    },
    ARROW: {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "An Arrow IPC stream, a file a row: `path`, `partition_values` (a map), "
            "`size`, `modification_time` (ms), `stats` (JSON text), `deletion_vector`, "
            "`base_row_id`, `default_row_commit_version`, `tags` (a map), and as `action` the "
            "whole line of the log. The schema's metadata has the fields of `ScanHead`, objects "
            "as JSON. Only a complete stream ends with Arrow's end-of-stream marker.",
        }
    },
}
VACUUM_STREAM: Content = {
    NDJSON: {
        "schema": {
            "type": "string",
            "description": "A `VacuumHead` on the first line, then `VacuumProgress` a line.",
        }
    }
}
FILES_STREAM: Content = {
    NDJSON: {"schema": {"type": "string", "description": "A `FilesSeenAnswer` a line."}}
}
METRICS_TEXT: Content = {"text/plain": {"schema": {"type": "string"}}}
_RETRY_AFTER: Content = {
    "Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}
}


class NdjsonResponse(Response):
    """Names the media type of a route's answer for its documentation."""

    media_type = NDJSON


class TextResponse(Response):
    """The same, for plain text."""

    media_type = "text/plain"


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def responses(
    *successes: tuple[int, type[Struct] | Content | None, str]
    | tuple[int, type[Struct] | Content | None, str, Content],
    codes: Sequence[Code],
    also: Content | None = None,
) -> Responses:
    """Successes as (status, answer type, description, headers), and the problems of `codes`.

    `also` is further content of the first success.
    """
    documented: Responses = {}
    for status, kind, description, *headers in successes:
        entry: dict[str, Any] = {"description": description}
        if isinstance(kind, type):
            entry["content"] = {JSON: {"schema": ref(kind.__name__)}}
        elif kind is not None:
            entry["content"] = dict(kind)
        if headers:
            entry["headers"] = dict(headers[0])
        if also and not documented:
            entry["content"] = {**entry["content"], **also}
        documented[status] = entry
    return documented | problems(codes)


def problems(codes: Sequence[Code]) -> Responses:
    """One response a status, with an example a code."""
    documented: Responses = {}
    for code in Code:
        if code not in codes:
            continue
        kind = PROBLEMS[code]
        entry = documented.setdefault(
            kind.status,
            {
                "description": "",
                "content": {PROBLEM_MEDIA_TYPE: {"schema": ref("ProblemBody"), "examples": {}}},
            },
        )
        entry["description"] += (
            f"\n- `{code}`: {kind.title}" if entry["description"] else (f"- `{code}`: {kind.title}")
        )
        entry["content"][PROBLEM_MEDIA_TYPE]["examples"][code.value] = _problem_example(code)
        if kind.status in (429, 503):
            entry["headers"] = dict(_RETRY_AFTER)
    return documented


def body(schema: str, examples: Mapping[str, Example]) -> dict[str, Any]:
    """A required JSON body."""
    return {
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": ref(schema), "examples": dict(examples)}},
        }
    }


def vacuum_body() -> dict[str, Any]:
    """What is asked of a vacuum, with or without an inventory."""
    document = body("VacuumBody", VACUUMS)
    document["requestBody"]["content"][NDJSON] = {
        "schema": {
            "type": "string",
            "description": "A `VacuumBody` on the first line, then for each file in the table's "
            "folder its `path` (absolute, or relative to the table), `length` in bytes and "
            "`modificationTime` in ms, as Delta's inventories have them.",
        },
        "examples": {"inventory": {"summary": "Of one file", "value": INVENTORY_NDJSON}},
    }
    return document


def proposal_body() -> dict[str, Any]:
    """A proposal in either of its forms."""
    document = body("ProposalBody", PROPOSALS)
    document["requestBody"]["content"][NDJSON] = {
        "schema": {
            "type": "string",
            "description": "An `EnvelopeBody` on the first line (everything but the actions), "
            "then an action a line, each at most 4 MiB.",
        },
        "examples": {
            "append": {
                "summary": "An append that read nothing; put your file's path in",
                "value": PROPOSAL_NDJSON,
            }
        },
    }
    return document


def _problem_example(code: Code) -> Example:
    kind = PROBLEMS[code]
    value: dict[str, Any] = {
        "type": PROBLEM_TYPE_PREFIX + code.value,
        "title": kind.title,
        "status": kind.status,
        "detail": f"{kind.title}.",
        "code": code.value,
        "retryable": kind.retryable,
        "instance": "5f2d6c1b9f0e4a6c8b1d2e3f4a5b6c7d",
    }
    if kind.error_class is not None:
        value["error_class"] = kind.error_class
        value["conflict"] = {
            "version": 13,
            "operation": "WRITE",
            "timestamp": 1763700000000,
            "path": "month=5/part-00001.parquet",
            "partition": {"month": "5"},
        }
        value["hint"] = "read the table again at version 13 or later"
    return {"summary": kind.title, "value": value}
