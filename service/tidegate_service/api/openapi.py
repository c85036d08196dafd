"""The OpenAPI document: FastAPI's paths over schemas made from the msgspec types."""

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from tidegate_protocol.log.actions import KINDS
from tidegate_service.api.answers import types, upkeep, verification
from tidegate_service.api.bodies import proposals, resources
from tidegate_service.api.describe.documents import ref
from tidegate_service.api.describe.examples import ANSWERS
from tidegate_service.api.http.problems.problems import ProblemBody
from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.api.http.request.requests import JSON
from tidegate_service.api.routing.policies import Public, policy_of
from tidegate_service.api.unity_catalog import describing as unity_catalog

DESCRIPTION = """\
Many writers, one order: Tidegate ratifies the commits of Delta Lake tables.

A writer reads a version, writes its data files, and proposes a transaction: what it read, and the
actions that are to land. The service checks it against every commit since, by Delta's own conflict
rules, and lands it as an ordinary `_delta_log/<version>.json`.

**What an answer says.** A 2xx to a proposal: it landed. A 409, 410 or 422: this id and body will
never land. Any other 4xx: this copy was not executed, which says nothing of one that was sent
before. Anything else says nothing: send the same id and body again.

**Whose answer it is.** Send an `X-Request-Id` of its own with every copy of a request. A 2xx is
this service's if its `X-Request-Id` is that one. A problem is if it is `application/problem+json`,
its `type` is `urn:tidegate:problem:` and its `code`, and its `instance` is that one. What a gateway
answers by itself says nothing of a proposal, whatever its status.

Bodies are JSON in UTF-8, and may be sent with `Content-Encoding: gzip`.

Everything that is not a success is an `application/problem+json` (RFC 9457) with a stable `code`.
Every answer carries `X-Request-Id`, the client's own if it sent one.
"""

TAGS = [
    {"name": "tables", "description": "Create, find and forget tables."},
    {"name": "commits", "description": "Propose transactions; read what landed."},
    {"name": "transactions", "description": "Transaction ids and application transactions."},
    {"name": "scan", "description": "Which files a reader needs."},
    {
        "name": "maintenance",
        "description": "Compare a table with its log; mend the index; write checkpoints.",
    },
    *unity_catalog.TAGS,
    {"name": "health", "description": "For whoever runs the service."},
]

_TOKEN = "token"
_TOKEN_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `tidegate token create`, where the service runs with "
    '`auth = "tokens"`. Tables that it may not read are answered as if there were none.',
}
_ACTION = "Action"
# Where msgspec sees raw JSON: (type, field) to what stands there.
_RAW_FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("ProposalBody", "actions"): {"type": "array", "items": ref(_ACTION)},
    ("CreateTableBody", "actions"): {"type": "array", "items": ref(_ACTION), "default": []},
    ("CreateTableBody", "protocol"): {"anyOf": [ref("Protocol"), {"type": "null"}]},
    ("TableAnswer", "protocol"): ref("Protocol"),
    ("TableAnswer", "metadata"): ref("Metadata"),
    ("CreatedAnswer", "protocol"): ref("Protocol"),
    ("CreatedAnswer", "metadata"): ref("Metadata"),
    ("ScanHead", "protocol"): ref("Protocol"),
    ("ScanHead", "metadata"): ref("Metadata"),
    ("ScanAnswer", "protocol"): ref("Protocol"),
    ("ScanAnswer", "metadata"): ref("Metadata"),
    ("ScanAnswer", "files"): {"type": "array", "items": ref(_ACTION)},
}
_TYPES = (
    ProblemBody,
    proposals.ProposalBody,
    proposals.EnvelopeBody,
    resources.CreateTableBody,
    resources.RegisterTableBody,
    resources.ScanBody,
    resources.CheckpointBody,
    resources.VacuumBody,
    types.TableAnswer,
    types.CreatedAnswer,
    types.TablesAnswer,
    types.ForgottenTablesAnswer,
    types.CommitAnswer,
    types.ConflictCheckAnswer,
    types.HistoryAnswer,
    types.TransactionAnswer,
    types.AppTransactionAnswer,
    types.DefaultLocationAnswer,
    types.DomainAnswer,
    types.ScanHead,
    types.ScanAnswer,
    upkeep.VacuumHead,
    upkeep.VacuumProgress,
    verification.VerificationAnswer,
    verification.FilesSeenAnswer,
    types.RebuiltAnswer,
    upkeep.CheckpointAnswer,
    upkeep.HookAnswer,
    upkeep.ManifestsAnswer,
    upkeep.UpkeepAnswer,
    types.HealthAnswer,
)


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=DESCRIPTION,
        tags=TAGS,
        routes=app.routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    for path, methods in document["paths"].items():
        if path.startswith(UNITY_PREFIX):
            for operation in methods.values():
                # FastAPI's own, of a call that has none.
                operation["responses"].pop("422", None)
    _add_examples(document)
    _add_security(document, app)
    document["components"] = {"schemas": schemas(), "securitySchemes": {_TOKEN: _TOKEN_SCHEME}}
    return document


def _add_security(document: dict[str, Any], app: FastAPI) -> None:
    """A token for all but the public calls. It is optional in the document, since a service on
    loopback may ask for none."""
    for context in iter_route_contexts(app.routes):
        methods = document["paths"].get(context.path_format, {})
        public = isinstance(policy_of(context.original_route), Public)
        for method in context.methods or ():
            if method.lower() in methods:
                methods[method.lower()]["security"] = [] if public else [{_TOKEN: []}, {}]


def _add_examples(document: dict[str, Any]) -> None:
    """Not left to FastAPI, which drops every null of what it is given."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                content = answer.get("content", {}).get(JSON, {})
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                if name in ANSWERS:
                    content["example"] = ANSWERS[name]


def schemas() -> dict[str, Any]:
    """Every schema by name, in name order."""
    _, found = msgspec.json.schema_components(
        [*_TYPES, *KINDS.values()], ref_template="#/components/schemas/{name}"
    )
    for (name, field), schema in _RAW_FIELDS.items():
        kept = {
            key: value
            for key, value in found[name]["properties"][field].items()
            if key in ("description", "default")
        }
        found[name]["properties"][field] = {**schema, **kept}
    for struct in KINDS.values():
        # The action's own bytes, which no JSON holds.
        found[struct.__name__]["properties"].pop(" raw")
    found[_ACTION] = {
        "title": _ACTION,
        "description": "One line of the Delta log: an object with one key, the kind of the "
        "action. Fields that nobody here knows reach the log as they are; an unknown kind is "
        "kept too, but conflicts over it cannot be checked.",
        "type": "object",
        "properties": {kind: ref(struct.__name__) for kind, struct in KINDS.items()},
        "minProperties": 1,
        "maxProperties": 1,
    }
    return dict(sorted(found.items()))
