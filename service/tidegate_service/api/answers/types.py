"""What successes look like: the types of every answer."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.responses import Response

from tidegate_service.api.http.request.requests import JSON
from tidegate_service.core.commit.transaction_ids import TransactionState
from tidegate_service.core.ports.records import TableState

_ENCODER = msgspec.json.Encoder()
_CONTENT_TYPE = (b"content-type", JSON.encode("ascii"))

Milliseconds = Annotated[int, Meta(description="In ms since 1970, UTC.")]


class TableAnswer(Struct, frozen=True, kw_only=True):
    """A table's head."""

    id: str
    name: str
    location: str
    catalog_managed: bool
    state: Annotated[
        TableState, Meta(description="`quarantined`: readable, but no commit is taken.")
    ]
    state_reason: str | None
    first_version: Annotated[
        int,
        Meta(
            description="Where history and time travel start: 0, what the log of a registered "
            "table could be read from, or a later version once those before it have expired."
        ),
    ]
    latest_version: int
    published_version: Annotated[
        int, Meta(description="The highest version that is in the log as `<version>.json`.")
    ]
    latest_timestamp: Milliseconds
    num_files: int
    size_bytes: int
    protocol: Annotated[Raw, Meta(description="The body of the log's protocol action.")]
    metadata: Annotated[Raw, Meta(description="The body of the log's metaData action.")]


class CreatedAnswer(TableAnswer, frozen=True, kw_only=True):
    """The head of a table that was made."""

    warnings: Annotated[
        list[str] | UnsetType,
        Meta(
            description="Where it was given properties that have no effect here: a sentence for "
            "each, which names it."
        ),
    ] = UNSET


class LostAnswer(Struct, frozen=True, kw_only=True):
    """A commit that was ratified, and that a rebuild found no place for in the log."""

    version: Annotated[int, Meta(description="What it was; another commit, or none, is that now.")]
    transaction_id: Annotated[str | None, Meta(description="It is closed: it will never land.")]


class UnknownIdsAnswer(Struct, frozen=True, kw_only=True):
    """Versions that were cleaned up while the index did not have them, both ends included."""

    first_version: int
    last_version: int


class RebuiltAnswer(TableAnswer, frozen=True, kw_only=True):
    """A table's head after its index was made anew."""

    lost: Annotated[
        list[LostAnswer],
        Meta(
            description="What is lost of a catalog-managed table whose database was set back: the "
            "published versions are the table's."
        ),
    ]
    unknown_ids: Annotated[
        UnknownIdsAnswer | None,
        Meta(
            description="Versions that were cleaned up before the index had read them, as after a "
            "restore of the database: their transaction ids are unknown. What they changed is part "
            "of the table; a transaction that landed as one of them may land again."
        ),
    ]


class TablesAnswer(Struct, frozen=True, kw_only=True):
    """One page of tables, in name order."""

    tables: list[TableAnswer]
    next_cursor: Annotated[str | None, Meta(description="Null on the last page.")]


class DefaultLocationAnswer(Struct, frozen=True, kw_only=True):
    """Where a table to be is put."""

    location: Annotated[str, Meta(description="A URL. The folder need not be there.")]


class ForgottenTableAnswer(Struct, frozen=True, kw_only=True):
    """What is kept of a table that was forgotten."""

    id: Annotated[str, Meta(description="The id that the table had.")]
    name: Annotated[str, Meta(description="The full name that it had.")]
    location: str
    catalog_managed: bool
    latest_version: int
    forgotten_at: Milliseconds


class ForgottenTablesAnswer(Struct, frozen=True, kw_only=True):
    """One page of forgotten tables, in the order of their ids."""

    tables: list[ForgottenTableAnswer]
    next_cursor: Annotated[str | None, Meta(description="Null on the last page.")]


class MetricsAnswer(Struct, frozen=True, kw_only=True):
    """What a commit did."""

    num_added_files: int
    num_removed_files: int
    bytes_added: int
    bytes_removed: int
    attempts: Annotated[
        int,
        Meta(
            description="How often it was decided before it landed: once more for each foreign "
            "version that took its place, and for each attempt that failed."
        ),
    ]
    duration_ms: int


class TotalsAnswer(Struct, frozen=True, kw_only=True):
    """What a table holds at a version."""

    version: int
    num_files: int
    size_bytes: int


class CommitAnswer(Struct, frozen=True, kw_only=True):
    """A commit that has landed. `version` is null, and with it what only a version has, where
    an empty proposal asked to be skipped: then nothing was written."""

    table: Annotated[str, Meta(description="The table's full name.")]
    version: int | None
    read_version: int | None
    transaction_id: str
    timestamp: Milliseconds | None
    isolation_level: str | None
    is_blind_append: bool
    rebased_over: Annotated[int, Meta(description="How many commits won the versions in between.")]
    published: Annotated[bool, Meta(description="Whether it is in the log as a file already.")]
    replayed: Annotated[
        bool, Meta(description="True: an earlier request with this id put it there.")
    ]
    metrics: MetricsAnswer
    check_ms: Annotated[
        int | None,
        Meta(
            description="Of `duration_ms`, what the checks against other commits took. Null where "
            "an earlier request put it there."
        ),
    ]
    totals: Annotated[
        TotalsAnswer | None,
        Meta(
            description="What the table holds at the version that was the latest once this one "
            "was saved: later than `version` where others landed together with it. Null where an "
            "earlier request put it there."
        ),
    ]


class ConflictCheckAnswer(Struct, frozen=True, kw_only=True):
    """What proposing the same body now would do; nothing was written."""

    table: Annotated[str, Meta(description="The table's full name.")]
    committed: Annotated[
        bool, Meta(description="True: this transaction landed before, as `version`.")
    ]
    version: Annotated[
        int | None,
        Meta(description="The version it would get, or has; null where there is nothing to do."),
    ]
    read_version: int | None
    transaction_id: str
    isolation_level: str | None
    is_blind_append: bool
    rebased_over: int


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One version of a table, as its commitInfo and the index describe it."""

    version: int
    timestamp: Milliseconds
    transaction_id: Annotated[
        str | None, Meta(description="Null for a foreign commit that carries none.")
    ]
    operation: str | None
    operation_parameters: dict[str, Any]
    operation_metrics: dict[str, Any]
    isolation_level: str | None
    is_blind_append: bool
    read_version: int | None
    rebased_over: int
    engine_info: str | None
    user_metadata: str | None
    tags: dict[str, str | None]
    foreign: Annotated[bool, Meta(description="True: written past the service.")]
    content_sha256: Annotated[
        str | None,
        Meta(
            description="Of the bytes of `<version>.json`, in hex. Null for the first version of a "
            "registered table that only a checkpoint is left of."
        ),
    ]
    metrics: MetricsAnswer


class HistoryAnswer(Struct, frozen=True, kw_only=True):
    """Versions, newest first."""

    table: str
    commits: list[HistoryEntry]
    next_to_version: Annotated[
        int | None, Meta(description="`to_version` of the next page; null on the last.")
    ]


class TransactionAnswer(Struct, frozen=True, kw_only=True):
    """What is known of a transaction id."""

    transaction_id: str
    state: Annotated[
        TransactionState, Meta(description="`pending`: being decided by this instance right now.")
    ]
    version: Annotated[int | None, Meta(description="Where it is committed.")]
    commit: Annotated[
        CommitAnswer | None,
        Meta(description="Where it is committed: what sending the same body again is told."),
    ] = None


class AppTransactionAnswer(Struct, frozen=True, kw_only=True):
    """The latest `txn` action of an application; version -1 where it has written none."""

    app_id: str
    version: int
    last_updated: Milliseconds | None


class DomainAnswer(Struct, frozen=True, kw_only=True):
    """The latest action of a metadata domain."""

    domain: str
    configuration: Annotated[
        str | None, Meta(description="None where the table has no such domain.")
    ]


class ScanHead(Struct, frozen=True, kw_only=True):
    """What a scan's files belong to: the first line of an NDJSON answer."""

    table: Annotated[str, Meta(description="The table's full name.")]
    table_id: str
    location: Annotated[str, Meta(description="What the files' paths are relative to.")]
    version: int
    timestamp: Milliseconds
    protocol: Annotated[Raw, Meta(description="The protocol action's body at this version.")]
    metadata: Annotated[Raw, Meta(description="The metaData action's body at this version.")]


class ScanAnswer(ScanHead, frozen=True, kw_only=True):
    """A version's files."""

    files: Annotated[list[Raw], Meta(description='Each `{"add": {...}}`, ordered by path.')]


class HealthAnswer(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str
    version: Annotated[str, Meta(description="Of the service.")]


class JsonResponse(Response):
    """Starlette's, of bytes and headers that need no check."""

    media_type = JSON

    def __init__(self, content: bytes, status: int, *, location: str | None) -> None:
        self.status_code = status
        self.background = None
        self.body = content
        self.raw_headers = [(b"content-length", b"%d" % len(content)), _CONTENT_TYPE]
        if location is not None:
            self.raw_headers.append((b"location", location.encode("ascii")))


def answer(body: Struct, status: int = 200, *, location: str | None = None) -> Response:
    """A JSON response, with a Location header, which is ASCII, where something has one."""
    return JsonResponse(_ENCODER.encode(body), status, location=location)
