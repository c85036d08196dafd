"""What has to be there: the ledger, and the files that the index does not know yet.

A file that lies in a plain table's log is its next version (I14), but the service reads it into
the index only when it decides something. So the ledger here is what the index should hold, and
`waiting` are the files beyond it; `settled` is the ledger with these as well.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.service.machine.seen import Rows
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import (
    Ingested,
    LandedCommit,
    ProposeOutcome,
    Published,
    Quarantined,
    Ratified,
    Stray,
)
from tidegate_protocol.ledger.state import TableLedger
from tidegate_protocol.log.actions import CommitInfo, Metadata
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_protocol.replay.commits import commit_info, parse_commit
from tidegate_service.core.log.catching_up.foreign_commits import FENCE_OPERATION, FENCED_ID


@dataclass(eq=False)
class Table:
    """One table; `waiting` are the files of its log beyond the index, oldest first."""

    name: str
    id: str
    location: Path
    managed: bool
    waiting: list[bytes] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.name


class Model:
    def __init__(self) -> None:
        self.ledger = Ledger()

    def of(self, table: Table) -> TableLedger:
        return self.ledger.tables[table.id]

    def settled(self, table: Table) -> Ledger:
        """The ledger with every file that lies in the log."""
        ledger = self.ledger
        for content in table.waiting:
            ledger, _ = _ingested(ledger, table.id, content, modified_ms=0)
        return ledger

    def took_in(self, table: Table, rows: Rows) -> None:
        """Follow the index, which may have read some of the waiting files by now."""
        for row in rows.commits[self.of(table).latest_version + 1 :]:
            if not table.waiting or _sha256(table.waiting[0]) != row.content_sha256:
                break
            content = table.waiting.pop(0)
            self.ledger, outcome = _ingested(
                self.ledger, table.id, content, modified_ms=row.timestamp
            )
            assert isinstance(outcome, Ingested), f"{outcome} was read into the index"
        if table.waiting and _is_quarantined(rows) and not self.is_quarantined(table):
            self.ledger, outcome = _ingested(self.ledger, table.id, table.waiting[0], modified_ms=0)
            assert isinstance(outcome, Quarantined), "a readable file quarantined the table"
        if table.managed:
            self.looked_at(table, rows)

    def looked_at(self, table: Table, rows: Rows) -> None:
        """Follow a look of an instance that was not sure of the table's head. It quarantines the
        table where a file lies in the log that some version behind the published ones cannot be
        published over; when an instance looks is its own affair."""
        self.marked(table, rows)
        known = self.of(table)
        if not _is_quarantined(rows) or known.quarantine_reason is not None:
            return
        version = known.published_version + 1
        while version in known.strays and not is_odd(known, version):
            version += 1
        assert version in known.strays, "quarantined, and nothing is in the way of publishing"
        self._put(replace(known, quarantine_reason=f"something else lies as version {version}"))

    def marked(self, table: Table, rows: Rows) -> None:
        """Follow a look that found files which a publisher had put and not marked: they are
        published."""
        while (known := self.of(table)).published_version < rows.head.published_version:
            version = known.published_version + 1
            assert version in known.strays, f"version {version} is published and has no file"
            assert not is_odd(known, version), f"version {version} is published over another file"
            self.ledger, outcome = self.ledger.publish(table.id)
            assert isinstance(outcome, Published), outcome

    def ended_quarantine(self, table: Table, rows: Rows) -> None:
        """Follow a rebuild, which ends the quarantine of a catalog-managed table where all that it
        has can be published. A file behind its head is none of it, and found by the next look."""
        known = self.of(table)
        if known.quarantine_reason is None or _is_quarantined(rows):
            return
        assert not any(is_odd(known, v) for v in known.strays if v <= known.latest_version)
        self._put(replace(known, quarantine_reason=None))

    def proposed(
        self, table: Table, proposal: Proposal, rows: Rows, *, answered: bool
    ) -> ProposeOutcome:
        """The outcome of a proposal that the service has dealt with. It is `Ratified` also where
        the service has not landed it; the ledger then does not hold it either. Nor is an id
        closed by an instance that did not get so far as to answer."""
        version = self.of(table).latest_version + 1
        now_ms = rows.commits[version].timestamp if version < len(rows.commits) else 0
        ledger, outcome = self.ledger.propose(table.id, proposal, now_ms=now_ms)
        if isinstance(outcome, Ratified):
            if version == len(rows.commits):
                return outcome
            assert rows.commits[version].timestamp == outcome.commit.timestamp
        elif not answered and proposal.transaction_id not in rows.aborted:
            return outcome
        self.ledger = ledger
        return outcome

    def left_behind(self, table: Table, files: Mapping[int, bytes]) -> bytes | None:
        """The file of a commit whose instance did not get to say so, which waits from now on."""
        if table.managed:
            return None
        content = files.get(self.of(table).latest_version + len(table.waiting) + 1)
        if content is not None:
            table.waiting.append(content)
        return content

    def published(self, table: Table, rows: Rows, files: Mapping[int, bytes]) -> None:
        """Follow the publisher, which may have got anywhere."""
        if not table.managed:
            return
        while self.of(table).published_version < rows.head.published_version:
            self.ledger, outcome = self.ledger.publish(table.id)
            assert isinstance(outcome, Published), outcome
        if _is_quarantined(rows) and not self.is_quarantined(table):
            self.ledger, outcome = self.ledger.publish(table.id)
            assert isinstance(outcome, Quarantined), f"quarantined, but {outcome}"
        known = self.of(table)
        ahead = known.published_version + 1
        while ahead in files:
            if ahead not in known.strays:
                # Its publisher died before it could say that it had published.
                assert files[ahead] == known.commits[ahead].content
                self.stray(table, ahead, files[ahead])
            ahead += 1

    def stray(self, table: Table, version: int, content: bytes) -> None:
        """A file came to lie where this version will be published."""
        self.ledger, outcome = self.ledger.foreign_commit(table.id, content, modified_ms=0)
        assert outcome == Stray(version=version)

    def abort(self, table: Table, transaction_id: str) -> None:
        self.ledger, _ = self.ledger.abort(table.id, transaction_id)

    def redated(self, table: Table, rows: Rows) -> None:
        """Take over when other writers' commits were made, as a rebuilt index dates them. Our
        own commits keep the time that was answered (I6)."""
        known = self.of(table)
        commits = tuple(
            commit
            if commit.body_digest is not None
            else replace(commit, timestamp=rows.commits[commit.version].timestamp)
            for commit in known.commits
        )
        self._put(replace(known, commits=commits))

    def registered(self, table: Table, files: Mapping[int, bytes], rows: Rows) -> None:
        """A table that was made of a log."""
        self._put(TableLedger(table_id=table.id, catalog_managed=False))
        for version in range(len(files)):
            self.ledger, outcome = _ingested(
                self.ledger, table.id, files[version], modified_ms=rows.commits[version].timestamp
            )
            assert isinstance(outcome, Ingested)
            self._date(table, version, rows.commits[version].timestamp)

    def is_quarantined(self, table: Table) -> bool:
        return self.of(table).quarantine_reason is not None

    def _date(self, table: Table, version: int, timestamp: int) -> None:
        known = self.of(table)
        dated = replace(known.commits[version], timestamp=timestamp)
        self._put(replace(known, commits=(*known.commits[:version], dated)))

    def _put(self, table: TableLedger) -> None:
        self.ledger = Ledger({**self.ledger.tables, table.table_id: table})


def _ingested(
    ledger: Ledger, table_id: str, content: bytes, *, modified_ms: int
) -> tuple[Ledger, object]:
    """A fence (`core.commit.batches.abort_fence`) closes the id that it names, which the ledger
    knows nothing of.
    """
    ledger, outcome = ledger.foreign_commit(table_id, content, modified_ms=modified_ms)
    if isinstance(outcome, Ingested):
        fenced = fenced_by(outcome.commit)
        if fenced is not None and ledger.tables[table_id].transaction(fenced) is None:
            ledger, _ = ledger.abort(table_id, fenced)
    return ledger, outcome


def fenced_by(commit: LandedCommit) -> str | None:
    """The transaction id that a commit keeps out, where it is a fence."""
    info = commit_info(commit.actions)
    if info is None or commit.body_digest is None or info.operation != FENCE_OPERATION:
        return None
    return (info.operation_parameters or {})[FENCED_ID]


def timestamp_in(content: bytes) -> int:
    """When a commit of ours was made, as its bytes say."""
    info = commit_info(parse_commit(content))
    assert info is not None
    assert info.timestamp is not None
    return info.timestamp


def txn_id(content: bytes) -> str:
    """The transaction id that a commit of ours carries."""
    info = commit_info(parse_commit(content))
    assert info is not None
    assert info.txn_id is not None
    return info.txn_id


def is_odd(known: TableLedger, version: int) -> bool:
    """Whether the file that lies as this version of a catalog-managed table is another one than the
    index has, or one that it has not."""
    return version > known.latest_version or known.commits[version].content != known.strays[version]


def _is_quarantined(rows: Rows) -> bool:
    return bool(rows.head.state == "quarantined")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def created_by(content: bytes, *, partition_columns: list[str]) -> Proposal:
    """The proposal that a created table's version 0 was."""
    info, *actions = parse_commit(content)
    assert isinstance(info, CommitInfo)
    assert info.txn_id is not None
    parameters = {**(info.operation_parameters or {}), "description": None}
    assert parameters["partitionBy"] == json.dumps(partition_columns)
    proposed = json.loads(parameters["properties"])
    return Proposal(
        transaction_id=info.txn_id,
        read_version=-1,
        operation="CREATE TABLE",
        operation_parameters=parameters,
        actions=tuple(
            _without_completion(action, proposed) if isinstance(action, Metadata) else action
            for action in actions
        ),
    )


def _without_completion(metadata: Metadata, proposed: dict[str, str]) -> Metadata:
    """The action as it was made of the request, before its features brought in properties."""
    return Metadata(
        id=metadata.id,
        schema_string=metadata.schema_string,
        partition_columns=metadata.partition_columns,
        configuration=proposed,
        created_time=metadata.created_time,
    )
