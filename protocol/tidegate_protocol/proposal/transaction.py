"""What a writer proposes, and the values a decision about it is made of."""

import hashlib
import typing
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Any

import msgspec

from tidegate_protocol.base.made import Made
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Partition,
    PartitionValues,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from tidegate_protocol.log.content import Content, pieces_of
from tidegate_protocol.log.paths import identity
from tidegate_protocol.log.weights import weight_of_all
from tidegate_protocol.proposal.demands import Demand
from tidegate_protocol.proposal.staged import StagedCommit

LONG_PREDICATES = 128
"""From so many characters on, reading the predicates of a transaction takes a millisecond and
more."""
VERY_LONG_PREDICATES = 1_024
"""From so many characters on, reading them takes ten milliseconds, and judging files by them takes
long, too."""
_CHARACTERS_A_PREDICATE = 64
"""What reading even the shortest predicate takes as long as."""
BYTES_AN_ACTION = 400
"""Of the log line of a usual file action."""


def predicates_length(predicates: Iterable[str]) -> int:
    """How long it takes to read them, in characters of long ones."""
    return sum([_CHARACTERS_A_PREDICATE + len(text) for text in predicates])


class IsolationLevel(StrEnum):
    """Delta's isolation levels, by the names that commitInfo carries."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a transaction read (Delta: readPredicates, readFiles, readTheWholeTable, readTxn).

    `predicates`: Spark SQL text, one entry a scan, the scan's whole filter; a file was read if
    any entry matches it. `files`: paths as actions carry them.
    """

    whole_table: bool = False
    predicates: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    app_ids: frozenset[str] = frozenset()
    _identities: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)
    parsed: dict[Hashable, object] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `reads.ReadPredicates` found out about the predicates, to find it out once."""

    @property
    def length(self) -> int:
        """Of the predicates (`predicates_length`)."""
        return predicates_length(self.predicates)

    @property
    def is_long(self) -> bool:
        """Whether reading the predicates takes long."""
        return bool(self.predicates) and self.length >= LONG_PREDICATES

    @property
    def is_very_long(self) -> bool:
        """Whether judging files by the predicates takes long, too."""
        return bool(self.predicates) and self.length >= VERY_LONG_PREDICATES

    @property
    def nothing(self) -> bool:
        """True where no file was depended on; reading an app id depends on no file."""
        return not (self.whole_table or self.predicates or self.files)

    def file_identities(self) -> frozenset[str]:
        """The `paths.identity` of every file, made once."""
        if self._identities is None:
            object.__setattr__(self, "_identities", frozenset(map(identity, self.files)))
        assert self._identities is not None
        return self._identities


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A transaction as a writer proposes it (HTTP contract, "A proposal").

    `read_version` is None for "check me at the head" (only for a proposal that read nothing
    and only adds files with data change) and -1 for the first commit of a table.

    `application_id` says who sends it, for commitInfo: a Spark application's id. Another
    application may send the same work again, so it is no part of what the digest names.
    `has_new_id` says that the id was made for this copy, so that there was no other before.
    `size` is how many bytes it came in, 0 for one that was not sent. `staged` is the commit
    where its writer has written that whole.
    """

    transaction_id: str
    operation: str
    actions: tuple[Action, ...]
    read_version: int | None = None
    reads: Reads = field(default_factory=Reads)
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict)
    isolation_level: IsolationLevel | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    engine_info: str | None = None
    skip_if_empty: bool = False
    application_id: str | None = None
    has_new_id: bool = False
    staged: StagedCommit | None = None
    size: int = field(default=0, compare=False)
    _digest: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def weight(self) -> int:
        """How much work its actions make, in usual ones: a few may hold megabytes."""
        return max(len(self.actions), self.size // BYTES_AN_ACTION)

    def digest(self) -> str:
        """SHA-256 (hex) of everything but the ids of transaction and application: tells a retry
        of the same work from another body under the same id, however the JSON around the actions
        was laid out."""
        if self._digest is None:
            object.__setattr__(self, "_digest", self._made_digest())
        assert self._digest is not None
        return self._digest

    def _made_digest(self) -> str:
        if self.staged is not None:
            return self.staged.digest()
        envelope = [
            self.operation,
            self.read_version,
            self.reads.whole_table,
            list(self.reads.predicates),
            sorted(self.reads.files),
            sorted(self.reads.app_ids),
            dict(self.operation_parameters),
            dict(self.operation_metrics),
            self.isolation_level,
            self.user_metadata,
            dict(self.tags),
            self.engine_info,
            self.skip_if_empty,
        ]
        sha = hashlib.sha256(msgspec.json.encode(envelope, order="deterministic"))
        for lines in pieces_of(self.actions):
            sha.update(b"\n")
            sha.update(memoryview(lines)[:-1])
        return sha.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadState:
    """What the table was at the version a transaction read; version -1 is "no table yet".

    `row_id_high_water_mark` is the highest row id given out by then, -1 for none.
    """

    version: int
    protocol: Protocol | None
    metadata: Metadata | None
    row_id_high_water_mark: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """The proposal can never be committed, whatever the log holds."""

    code: Code
    detail: str
    action_index: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """A commit between a transaction's read version and its place in the log.

    `timestamp` is the version's date in ms. `is_blind_append` is what its commitInfo claims;
    `isolation.is_blind_winner` says whether the claim is believed.
    """

    version: int
    timestamp: int
    operation: str | None
    is_blind_append: bool
    adds: tuple[Add, ...] = ()
    removes: tuple[Remove, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    txns: tuple[Txn, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    commit_info: CommitInfo | None = None
    unknown: tuple[UnknownAction, ...] = ()
    found: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found out about its actions, to find it out once."""

    @property
    def weight(self) -> int:
        """Of its actions (`log.weights`)."""
        if "weight" not in self.found:
            self.weigh()
        return self.found["weight"]

    @property
    def gives_vectors_alone(self) -> bool:
        """What `gives_vectors_alone` says of its actions."""
        if "gives_vectors_alone" not in self.found:
            found = gives_vectors_alone((*self.adds, *self.removes))
            self.found["gives_vectors_alone"] = found
        return bool(self.found["gives_vectors_alone"])

    def weigh(self) -> None:
        """Have this, and the weight, ready for those who may not take long."""
        _ = self.gives_vectors_alone
        singles = (self.metadata, self.protocol, self.commit_info)
        held = [single for single in singles if single is not None]
        lists = (self.adds, self.removes, self.txns, self.domains, self.unknown)
        self.found["weight"] = weight_of_all(chain(held, *lists))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A winner got there first, and the transaction must be done again on a newer version.

    `partition` is the hint by column name; `read_file` asks the caller, who knows the snapshot
    at the read version, to fill the hint from that file's partition values; `read_vector` is the
    id of its deletion vector, as the winner's remove names it.
    """

    code: Code
    detail: str
    winner: WinningCommit
    path: str | None = None
    partition: PartitionValues | None = None
    read_file: str | None = None
    read_vector: str | None = None
    app_id: str | None = None
    domain: str | None = None


class ReadFilter(typing.Protocol):
    """What of a winner's added files a transaction should have read (`reads.ReadPredicates`)."""

    def first_match(self, adds: Sequence[Add], *, use_statistics: bool) -> Add | None:
        """The first file that the transaction's reads would have covered."""
        ...

    def covers_everything(self, *, use_statistics: bool) -> bool:
        """Whether `first_match` is the first file, whichever it is."""
        ...

    def covered(self, partitions: Iterable[Partition]) -> Iterator[Partition]:
        """Those of the partitions whose files `first_match` may be, where not any file is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTransaction:
    """A valid proposal on its way: prepared once, then moved past each winner in turn.

    `protocol` and `metadata` are what the table will have after it (the newest known of the
    transaction's own, the winners' and the read version's); `read` never changes.
    `checked_through` is the last version it was found not to conflict with: the read version at
    first, so that it can land at `checked_through + 1` and nowhere else.
    """

    proposal: Proposal
    read: ReadState
    actions: tuple[Action, ...]
    protocol: Protocol
    metadata: Metadata
    metadata_changed: bool
    isolation_level: IsolationLevel
    is_blind_append: bool
    read_filter: ReadFilter
    checked_through: int
    tags: Mapping[str, str] = field(default_factory=dict)
    row_id_high_water_mark: int = -1
    row_ids_released: bool = False
    excused_reads: frozenset[str] = frozenset()
    demands: tuple[Demand, ...] = ()
    made: Made = field(default_factory=Made, repr=False, compare=False)
    """What was made of its parts: a transaction is another one with each winner."""

    def removed_files(self) -> Mapping[str, Remove]:
        """The removes among the actions by the `paths.identity` of their file, made once."""
        return self.made.of(self.actions, _removed_files)

    def added_files(self) -> Mapping[str, Add]:
        """The adds, likewise."""
        return self.made.of(self.actions, _added_files)


def _removed_files(actions: Sequence[Action]) -> Mapping[str, Remove]:
    return {identity(action.path): action for action in actions if isinstance(action, Remove)}


def gives_vectors_alone(actions: Sequence[Action]) -> bool:
    """Whether a deletion vector comes with a path that is not removed: a commit that removes
    nothing, either, may add the path with another vector."""
    given = {
        identity(action.path)
        for action in actions
        if isinstance(action, Add) and action.deletion_vector is not None
    }
    return bool(given) and not given <= _removed_files(actions).keys()


def _added_files(actions: Sequence[Action]) -> Mapping[str, Add]:
    return {identity(action.path): action for action in actions if isinstance(action, Add)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyCommit:
    """What would land as `<version>.json` if nobody else takes the version first."""

    version: int
    timestamp: int
    content: Content
    actions: tuple[Action, ...]
    transaction: PreparedTransaction
    commit_info: CommitInfo
