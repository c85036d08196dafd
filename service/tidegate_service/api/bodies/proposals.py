"""The body of a proposal, as JSON or NDJSON, to the protocol's `Proposal`."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from fastapi import Request
from msgspec import Meta, Raw, Struct, field

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.weights import has_more_values
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal, Reads
from tidegate_service.api.bodies.action_lines import FEW, ActionLines
from tidegate_service.api.bodies.decoding import (
    MAX_ACTION_BYTES,
    MAX_ACTIONS,
    decode_actions,
    decode_envelope,
    lines_of,
    read_body,
)
from tidegate_service.api.bodies.streaming import read_into
from tidegate_service.api.http.problems.problems import BadRequest, BodyError
from tidegate_service.api.http.request.requests import (
    JSON,
    NDJSON,
    max_stream_actions_of,
    max_stream_bytes_of,
    media_type,
    state_of,
)
from tidegate_service.core.errors import Refused

TRANSACTION_ID = r"^[A-Za-z0-9._:-]{1,128}$"
OPERATION = r"^[^\x00-\x1f\x7f-\x9f]{1,256}$"
MAX_VERSION = 2**63 - 1

_TRANSACTION_ID = re.compile(TRANSACTION_ID[:-1] + r"\Z")
_OPERATION = re.compile(OPERATION[:-1] + r"\Z")

# Of an array, so that each text that is decoded at once is of a usual size.
_LINES_AT_ONCE = 1000

Version = Annotated[int, Meta(ge=-1, le=MAX_VERSION)]
Predicate = Annotated[str, Meta(max_length=65536)]


class ReadsBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the transaction read; absent means nothing."""

    whole_table: Annotated[
        bool, Meta(description="Read everything: any added or removed file conflicts.")
    ] = False
    predicates: Annotated[
        tuple[Predicate, ...],
        Meta(
            max_length=1000,
            description="Spark SQL text over the table's columns, one entry a scan: its whole "
            "filter. A file was read if any entry may match it.",
            examples=[["day = '2026-11-20'"]],
        ),
    ] = ()
    files: Annotated[
        frozenset[str],
        Meta(description="Paths of the files that were read, as their actions carry them."),
    ] = frozenset()
    app_ids: Annotated[
        frozenset[str],
        Meta(description="Application ids whose latest `txn` version was read."),
    ] = frozenset()


class EnvelopeBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of an NDJSON proposal: everything but the actions."""

    operation: Annotated[
        str,
        Meta(
            description="Delta's name of the operation, 1 to 256 characters.",
            examples=["WRITE"],
            extra_json_schema={"pattern": OPERATION},
        ),
    ]
    transaction_id: Annotated[
        str | None,
        Meta(
            description="Names this work for ever: sent again, it gets the first answer again. "
            "1 to 128 letters, digits and `._:-`; made by the service where absent.",
            examples=["0f0c7c1e-6f0b-4f5e-9d55-7f6f2b8a4c11"],
            extra_json_schema={"pattern": TRANSACTION_ID},
        ),
    ] = None
    read_version: Annotated[
        Version | None,
        Meta(
            description="The version that the transaction read. Absent or null: a proposal that "
            "read nothing and only adds files, with dataChange = true, is checked at the head."
        ),
    ] = None
    reads: ReadsBody = field(default_factory=ReadsBody)
    operation_parameters: Annotated[
        dict[str, Any], Meta(description="Goes into commitInfo as it is.")
    ] = {}
    operation_metrics: Annotated[
        dict[str, Any], Meta(description="Goes into commitInfo as it is.")
    ] = {}
    isolation_level: Annotated[
        Literal["Serializable", "WriteSerializable", "SnapshotIsolation"] | None,
        Meta(description="By default the table's own."),
    ] = None
    user_metadata: str | None = None
    tags: dict[str, str] = {}
    engine_info: Annotated[
        str | None, Meta(description="The writer's name and version, for commitInfo.")
    ] = None
    skip_if_empty: Annotated[
        bool, Meta(description="Write no version where there are no actions.")
    ] = False


class ProposalBody(EnvelopeBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transaction, proposed."""

    actions: Annotated[
        Raw, Meta(description="The Delta log's actions, each an object with one key, its kind.")
    ]


MAX_TOLD_BYTES = 64 * 1024
"""What a proposal says for the history alone. It is decoded with each row of a page."""
MAX_TOLD_VALUES = 4_000
"""So many take as long to decode as `MAX_TOLD_BYTES` of one text, ten times."""
_NAME_BYTES = 40

_PROPOSAL = msgspec.json.Decoder(ProposalBody)
_ENVELOPE = msgspec.json.Decoder(EnvelopeBody)


async def read_proposal(request: Request, new_id: Callable[[], str]) -> Proposal:
    """The request's proposal, with an id by `new_id` where it has none.

    Raises `BadRequest`, and `Refused` for a media type or size that is not taken.
    """
    kind = media_type(request, JSON, NDJSON)
    if kind == JSON:
        body, actions, size = await read_body(request, _from_json)
    else:
        lines = _ProposalLines(max_actions=max_stream_actions_of(request))
        await read_into(lines, request, max_bytes=max_stream_bytes_of(request))
        body, actions, size = lines.found()
    return Proposal(
        transaction_id=new_id() if body.transaction_id is None else body.transaction_id,
        operation=body.operation,
        actions=actions,
        read_version=body.read_version,
        reads=Reads(
            whole_table=body.reads.whole_table,
            predicates=body.reads.predicates,
            files=body.reads.files,
            app_ids=body.reads.app_ids,
        ),
        operation_parameters=body.operation_parameters,
        operation_metrics=body.operation_metrics,
        isolation_level=None
        if body.isolation_level is None
        else IsolationLevel(body.isolation_level),
        user_metadata=body.user_metadata,
        tags=body.tags,
        engine_info=body.engine_info,
        skip_if_empty=body.skip_if_empty,
        application_id=state_of(request).application_id,
        has_new_id=body.transaction_id is None,
        size=_weighed(size, body),
    )


_Found = tuple[EnvelopeBody, tuple[Action, ...], int]
"""What a body says, and how many bytes it has."""


def _from_json(body: bytes) -> _Found:
    proposal = decode_envelope(body, _PROPOSAL, actions=lambda value: value.actions)
    _check(proposal)
    return proposal, decode_array(proposal.actions), len(body)


def decode_array(array: Raw) -> tuple[Action, ...]:
    """The actions of a JSON body. Raises as `ActionLines.add` and `lines_of`."""
    lines = lines_of(array)
    if len(lines) <= FEW:
        return decode_actions(lines)
    actions = ActionLines(max_actions=MAX_ACTIONS)
    for start in range(0, len(lines), _LINES_AT_ONCE):
        actions.add_each(lines[start : start + _LINES_AT_ONCE])
    return actions.all()


class _ProposalLines:
    """Reads an NDJSON body: a line of everything but the actions, then a line each of them."""

    def __init__(self, *, max_actions: int) -> None:
        self._rest = b""
        self._fed = 0
        self._envelope: EnvelopeBody | None = None
        self._actions = ActionLines(max_actions=max_actions)

    @property
    def size(self) -> int:
        return self._actions.size

    def feed(self, piece: bytes) -> None:
        self._fed += len(piece)
        text = self._rest + piece
        end = text.rfind(b"\n") + 1
        self._rest = text[end:]
        if len(self._rest) > MAX_ACTION_BYTES:
            raise Refused(
                f"a line has more than {MAX_ACTION_BYTES} bytes; no more are taken",
                code=Code.TOO_LARGE,
                hint="name what was read by predicates instead of files"
                if self._envelope is None
                else None,
            )
        if end:
            self._lines(text[:end])

    def end(self) -> None:
        """The last line need not end."""
        if self._rest or self._envelope is None:
            self._lines(self._rest + b"\n")

    def found(self) -> _Found:
        assert self._envelope is not None, "the first line is the envelope"
        return self._envelope, self._actions.all(), self._fed

    def _lines(self, text: bytes) -> None:
        if self._envelope is None:
            first, _, text = text.partition(b"\n")
            self._envelope = decode_envelope(first, _ENVELOPE)
            _check(self._envelope)
        if text:
            self._actions.add(text)


def _check(body: EnvelopeBody) -> None:
    if body.transaction_id is not None and not _TRANSACTION_ID.match(body.transaction_id):
        raise BadRequest(
            [
                BodyError(
                    where="/transaction_id",
                    why="expected 1 to 128 ASCII letters, digits and '._:-'",
                )
            ]
        )
    check_operation(body.operation)
    check_told(
        body.operation_parameters,
        body.operation_metrics,
        body.user_metadata,
        body.engine_info,
        tags=body.tags,
    )


def check_operation(operation: str) -> None:
    """Raise `BadRequest` for what cannot be an operation's name."""
    if not _OPERATION.match(operation):
        raise BadRequest(
            [
                BodyError(
                    where="/operation", why="expected 1 to 256 characters, none a control character"
                )
            ]
        )


def check_told(
    operation_parameters: Mapping[str, Any],
    operation_metrics: Mapping[str, Any],
    user_metadata: str | None,
    engine_info: str | None,
    *,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise `Refused` (`too-large`) for more than a commit may tell the history."""
    told = (operation_parameters, operation_metrics, dict(tags), user_metadata, engine_info)
    encoded = msgspec.json.encode(told)
    size = len(encoded)
    if has_more_values(told, encoded, MAX_TOLD_VALUES):
        raise Refused(
            "operation_parameters, operation_metrics, tags, user_metadata and engine_info have "
            f"more than {MAX_TOLD_VALUES} values together, those within values counted",
            code=Code.TOO_LARGE,
        )
    if size > MAX_TOLD_BYTES:
        raise Refused(
            "operation_parameters, operation_metrics, tags, user_metadata and engine_info have "
            f"{size} bytes together; at most {MAX_TOLD_BYTES} are taken",
            code=Code.TOO_LARGE,
        )


def _weighed(size: int, body: EnvelopeBody) -> int:
    """The size of a body, in bytes: what is named as read takes as long as so many of an action."""
    return size + _NAME_BYTES * (len(body.reads.files) + len(body.reads.app_ids))
