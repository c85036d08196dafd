"""What the index holds of one table, as values in memory: what its rows in Postgres are.

A transaction changes a copy, which is put in the place of the one that all see when it commits. The
fences of the schema are here, too: what breaks one is a defect, and raised as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate_protocol.features.row_tracking import DOMAIN, NO_ROW_IDS, high_water_mark
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.codec import encode
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_protocol.replay.commits import parse_commit, summarize
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.records import (
    Aborted,
    CommitRecord,
    NewTable,
    QuarantineCause,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.index.rows.effects import Effects, FileKey, effects_of
from tidegate_service.index.rows.records import metadata_of, protocol_of

Life = tuple[int, int | None, Add]
"""Of a file: the version that added it, the one that removed it, and its action."""


def stored_protocol(action: Protocol | None) -> Protocol | None:
    """As it is read from the index: from its own bytes."""
    return None if action is None else protocol_of(encode(action))


def stored_metadata(action: Metadata | None) -> Metadata | None:
    return None if action is None else metadata_of(encode(action))


def empty_record(table: NewTable) -> TableRecord:
    return TableRecord(
        id=table.id,
        name=table.name,
        location=table.location,
        catalog_managed=table.catalog_managed,
        state=TableState.ACTIVE,
        state_reason=None,
        quarantine_cause=None,
        latest_version=-1,
        published_version=-1,
        latest_timestamp=-1,
        protocol=None,
        metadata=None,
        num_files=0,
        size_bytes=0,
        first_version=0,
        epoch=0,
    )


@dataclass(slots=True)
class Rows:
    """One table's. `commits` begin at `record.first_version`; `past` is what ids landed as that the
    log forgot, `aside` what ids landed as before a rebuild that is under way; `past_metadata_ids`
    are those from before the versions that are here."""

    record: TableRecord
    commits: list[RatifiedCommit] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    past: dict[str, CommitRecord] = field(default_factory=dict)
    tombstones: dict[str, int | None] = field(default_factory=dict)
    states: list[tuple[int, Protocol, Metadata]] = field(default_factory=list)
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    files: dict[FileKey, tuple[Life, ...]] = field(default_factory=dict)
    forgotten_through: int = -1
    aside: dict[str, CommitRecord] | None = None
    past_metadata_ids: frozenset[str] = frozenset()

    def copy(self) -> "Rows":
        return Rows(
            self.record,
            list(self.commits),
            dict(self.ids),
            dict(self.past),
            dict(self.tombstones),
            list(self.states),
            dict(self.txns),
            dict(self.domains),
            dict(self.files),
            self.forgotten_through,
            self.aside,
            self.past_metadata_ids,
        )

    @property
    def metadata_ids(self) -> frozenset[str]:
        """The ids that the metadata had at the versions that are here."""
        return frozenset(metadata.id for _, _, metadata in self.states)

    def commit(self, version: int) -> RatifiedCommit | None:
        at = version - self.record.first_version
        return self.commits[at] if 0 <= at < len(self.commits) else None

    def transaction(self, transaction_id: str) -> CommitRecord | Aborted | None:
        version = self.ids.get(transaction_id)
        if version is not None:
            found = self.commit(version)
            assert found is not None
            return found.record
        if transaction_id in self.past:
            return self.past[transaction_id]
        if transaction_id in self.tombstones:
            return Aborted(transaction_id, self.tombstones[transaction_id])
        return None

    def state_at(self, version: int) -> ReadState | None:
        if version == -1:
            return ReadState(version=-1, protocol=None, metadata=None)
        if self.commit(version) is None:
            return None
        for at, protocol, metadata in reversed(self.states):
            if at <= version:
                return ReadState(version=version, protocol=protocol, metadata=metadata)
        return None

    def winners(self, after: int, through: int) -> tuple[Sequence[WinningCommit] | None, int]:
        """Those that there are, None where one is missing, and how many bytes they have."""
        found = []
        size = 0
        for version in range(after + 1, through + 1):
            commit = self.commit(version)
            if commit is None:
                return None, size
            if commit.content is None:
                raise ServiceError(f"version {version} has no content to read a winner from")
            size += len(commit.content)
            actions = parse_commit(bytes(commit.content))
            found.append(summarize(version, actions, timestamp=commit.record.timestamp))
        return found, size

    def content(self, version: int) -> bytes | None:
        """Of a version that is not published, or was not long ago."""
        commit = self.commit(version)
        if commit is None or commit.content is None or commit.published:
            return None
        return None if version <= self.forgotten_through else bytes(commit.content)

    def live(self, version: int) -> list[Add]:
        """In the order of their keys."""
        return [
            add
            for key in sorted(self.files)
            for added, removed, add in self.files[key]
            if added <= version and (removed is None or removed > version)
        ]

    def file_at(self, path: str, version: int) -> Add | None:
        for (plain, _), lives in self.files.items():
            for added, removed, add in lives:
                is_live = added <= version and (removed is None or removed > version)
                if plain == path and is_live:
                    return add
        return None

    @property
    def row_id_high_water_mark(self) -> int:
        found = self.domains.get(DOMAIN)
        return NO_ROW_IDS if found is None else high_water_mark(found)

    def write(self, commit: RatifiedCommit, effects: Effects) -> None:
        """The next version's rows. Raises `ServiceError` where a fence is in its way."""
        record, head = commit.record, self.record
        if record.version != head.latest_version + 1:
            raise ServiceError(f"the head of table {head.id} is not before {record.version}")
        if record.transaction_id is not None:
            if record.transaction_id in self.ids:
                raise ServiceError(f"commits_transaction_id_key: {record.transaction_id}")
            self.ids[record.transaction_id] = record.version
        if commit.published and head.published_version != head.latest_version:
            raise ServiceError(f"version {record.version} is published before those before it")
        if not commit.published and not head.catalog_managed:
            raise ServiceError("tables_plain_published_check")
        self.commits.append(commit)
        closed, closed_bytes = self._change_files(record.version, effects.files)
        self.txns.update(effects.txns)
        self._set_domains(effects.domains)
        protocol = stored_protocol(effects.protocol) or head.protocol
        metadata = stored_metadata(effects.metadata) or head.metadata
        if protocol is None or metadata is None:
            raise ServiceError("tables_head_check")
        if effects.protocol is not None or effects.metadata is not None:
            self.states.append((record.version, protocol, metadata))
        self.record = replace(
            head,
            latest_version=record.version,
            published_version=record.version if commit.published else head.published_version,
            latest_timestamp=record.timestamp,
            protocol=protocol,
            metadata=metadata,
            num_files=head.num_files + effects.opened - closed,
            size_bytes=head.size_bytes + effects.opened_bytes - closed_bytes,
        )

    def _change_files(self, version: int, files: Mapping[FileKey, Add | None]) -> tuple[int, int]:
        """How many live files were closed by it, and their bytes."""
        closed = closed_bytes = 0
        for key, add in files.items():
            lives = self.files.get(key, ())
            if lives and lives[-1][1] is None:
                added, _, before = lives[-1]
                lives = (*lives[:-1], (added, version, before))
                closed, closed_bytes = closed + 1, closed_bytes + before.size
            if add is not None:
                lives = (*lives, (version, None, add))
            if lives:
                self.files[key] = lives
        return closed, closed_bytes

    def _set_domains(self, domains: Mapping[str, DomainMetadata]) -> None:
        for name, action in domains.items():
            if action.removed:
                self.domains.pop(name, None)
            else:
                self.domains[name] = action

    def write_base(self, commit: RatifiedCommit, batches: Sequence[Sequence[Action]]) -> None:
        """The first version of a table whose log reaches back no further."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        version, count, size = commit.record.version, 0, 0
        self.commits.append(commit)
        if commit.record.transaction_id is not None:
            self.ids[commit.record.transaction_id] = version
        for actions in batches:
            effects = effects_of(actions)
            added = {key: add for key, add in effects.files.items() if add is not None}
            twice = len(added) < sum(isinstance(action, Add) for action in actions)
            if twice or not self.files.keys().isdisjoint(added):
                raise UnreadableFile("a file of the table is named twice in the checkpoint")
            self._change_files(version, added)
            self.txns.update(effects.txns)
            self._set_domains(effects.domains)
            protocol = stored_protocol(effects.protocol) or protocol
            metadata = stored_metadata(effects.metadata) or metadata
            count += len(added)
            size += sum(add.size for add in added.values())
        if protocol is None or metadata is None:
            raise ValueError("a base needs a protocol and metadata")
        self.states.append((version, protocol, metadata))
        self.record = replace(
            self.record,
            first_version=version,
            latest_version=version,
            published_version=version,
            latest_timestamp=commit.record.timestamp,
            protocol=protocol,
            metadata=metadata,
            num_files=count,
            size_bytes=size,
        )

    def date_back(self, before: int) -> None:
        latest = self.record.latest_version
        for at, commit in enumerate(self.commits):
            most = before - 1 - (latest - commit.record.version)
            if commit.record.timestamp > most:
                dated = replace(commit.record, timestamp=most)
                self.commits[at] = replace(commit, record=dated)
        if self.record.latest_timestamp < before:
            raise ServiceError("the latest version is dated before that already")
        self.record = replace(self.record, latest_timestamp=before - 1)

    def date_in_order(self) -> None:
        most = self.commits[-1].record.timestamp
        for at, commit in reversed(list(enumerate(self.commits))):
            most = min(most, commit.record.timestamp)
            self.commits[at] = replace(commit, record=replace(commit.record, timestamp=most))
            most -= 1

    def quarantine(self, reason: str, cause: QuarantineCause) -> None:
        head = self.record
        is_quarantined = head.state is TableState.QUARANTINED
        if is_quarantined and cause in (QuarantineCause.LOG, head.quarantine_cause):
            return
        self.record = replace(
            head,
            state=TableState.QUARANTINED,
            state_reason=reason.replace("\0", "\N{REPLACEMENT CHARACTER}"),
            quarantine_cause=cause,
        )

    def release(self) -> None:
        self.record = replace(
            self.record, state=TableState.ACTIVE, state_reason=None, quarantine_cause=None
        )

    def reset(self) -> None:
        """Drop all but the row and the tombstones; what ids landed as is put aside."""
        aside = dict(self.past)
        for commit in self.commits:
            if commit.record.transaction_id is not None:
                aside[commit.record.transaction_id] = commit.record
        record = replace(
            self.record,
            state=TableState.ACTIVE,
            state_reason=None,
            quarantine_cause=None,
            latest_version=-1,
            published_version=-1,
            latest_timestamp=-1,
            first_version=0,
            protocol=None,
            metadata=None,
            num_files=0,
            size_bytes=0,
            epoch=self.record.epoch + 1,
        )
        fresh = Rows(
            record,
            tombstones=self.tombstones,
            aside=aside,
            past_metadata_ids=self.past_metadata_ids | self.metadata_ids,
        )
        for name in Rows.__slots__:
            setattr(self, name, getattr(fresh, name))

    @property
    def answered(self) -> tuple[int, int]:
        own = (commit.record for commit in reversed(self.commits) if not commit.record.foreign)
        found = next(own, self.commits[0].record)
        return found.version, found.timestamp

    def take_id(self, transaction_id: str) -> None:
        """The commit that has the id has none any more."""
        self.rewrite(self.ids.pop(transaction_id), transaction_id=None)

    def rewrite(self, version: int, **fields: object) -> None:
        at = version - self.record.first_version
        commit = self.commits[at]
        record = replace(commit.record, **fields)  # type: ignore[arg-type]
        self.commits[at] = replace(commit, record=record)
