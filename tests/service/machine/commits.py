"""Commits through the service and past it, each held against the ledger when it is done."""

import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import httpx

from tests.service.machine import answers, drawing, promises, seen
from tests.service.machine.answers import is_problem, is_unknown
from tests.service.machine.drawing import Change, Envelope, Past, ReadsDraw, TableDraw
from tests.service.machine.model import Model, Table, created_by, timestamp_in, txn_id
from tests.service.machine.rig import Rig
from tests.service.machine.seen import Rows
from tests.service.machine.ways import Way
from tests.service.machine.wire import Put
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import (
    ConflictCheckOutcome,
    Created,
    LandedCommit,
    NothingToCommit,
    Quarantined,
    Ratified,
    Replayed,
    TransactionAborted,
    VersionNotFound,
    WouldCommit,
)
from tidegate_protocol.ledger.state import IdState, TableLedger
from tidegate_protocol.log.codec import decode
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version
from tidegate_protocol.proposal.transaction import Conflict, Invalid, IsolationLevel, Proposal
from tidegate_protocol.replay.commits import commit_info, parse_commit
from tidegate_service.core.ports.store.put_result import PutResult

_runs = itertools.count(1)


class Commits:
    """The service and the model side by side, with the tables that both have."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.model = Model()
        self.memory = promises.Memory()
        self.tables: list[Table] = []
        self._run = next(_runs)
        self._began_ms = 0

    def name(self) -> str:
        """A table name that nobody has had."""
        return f"run{self._run}.main.t{len(self.tables)}"

    def create(self, draw: TableDraw) -> Table:
        body = draw.body(self.name())
        answer = self.rig.run(self.rig.a.post("/tables", body))
        assert answer.status_code == 201, answer.text
        made = answer.json()
        table = Table(
            name=made["name"],
            id=made["id"],
            location=Path(made["location"].removeprefix("file://")),
            managed=draw.managed,
        )
        content = self.rig.run(self.rig.b.get(f"/tables/{table.name}/commits/0")).content
        first = created_by(content, partition_columns=body["partition_columns"])
        self.model.ledger, outcome = self.model.ledger.create(
            table.id, first, now_ms=made["latest_timestamp"]
        )
        assert isinstance(outcome, Created), outcome
        assert outcome.commit.content == content, (outcome.commit.content, content)
        self.tables.append(table)
        self.check(table)
        return table

    def proposal(
        self, table: Table, id_: str, change: Change, reads: ReadsDraw, envelope: Envelope
    ) -> Proposal:
        """A proposal that a writer would make who read the table as it is, or a while ago."""
        known = self.model.settled(table).tables[table.id]
        lag = envelope.lag
        version = None if lag is None else max(known.latest_version - lag, 0)
        at = known.latest_version if version is None else min(version, known.latest_version)
        snapshot = known.snapshot(at)
        lines = drawing.lines(change, snapshot)
        return Proposal(
            transaction_id=id_,
            operation=envelope.operation,
            actions=tuple(decode(json.dumps(line).encode()) for line in lines),
            read_version=version,
            reads=reads.of(snapshot),
            isolation_level=envelope.isolation and IsolationLevel(envelope.isolation),
            user_metadata=envelope.note,
            skip_if_empty=envelope.skip_if_empty,
        )

    def propose(self, table: Table, proposal: Proposal, way: Way) -> None:
        answer = self._send(table, proposal, "commits", way)
        quarantined = self.model.is_quarantined(table)
        rows, files = self._look(table)
        waited = bool(table.waiting)
        self.model.took_in(table, rows)
        settled = self.model.settled(table)
        closes = self._closes(table, proposal)
        refused = answer is not None and answer.status_code != 503
        outcome = self.model.proposed(table, proposal, rows, answered=refused)
        in_index = isinstance(outcome, Ratified) and (
            outcome.commit.version == self.model.of(table).latest_version
        )
        landed = in_index
        if in_index:
            self._check_time(table, self.model.of(table))
        elif isinstance(outcome, Ratified | VersionNotFound):
            landed = self._left_behind(table, proposal, settled, files)
        if answer is None and isinstance(outcome, Ratified) and not waited:
            assert landed == way.dies_after_landing(managed=table.managed)
        elif table.waiting and _is_of_the_head(proposal, outcome):
            # Its instance died when it had looked into the log.
            assert not refused
            at_end = settled.conflict_check(table.id, proposal)
            if isinstance(at_end, WouldCommit):
                landed = self._left_behind(table, proposal, settled, files)
            elif isinstance(at_end, Invalid) and closes:
                self._fence(table, proposal.transaction_id, rows, files)
        elif isinstance(outcome, Invalid) and closes:
            self._fence(table, proposal.transaction_id, rows, files)
        if answer is not None:
            if isinstance(outcome, Ratified | VersionNotFound) and not in_index:
                # The log was looked into; what is found there is kept only where it is of use.
                outcome = settled.conflict_check(table.id, proposal)
            if self.model.is_quarantined(table) > quarantined:
                # Whatever else was to be said, the log was looked into first: what became of an id
                # is still told.
                said = settled.conflict_check(table.id, proposal)
                may_be_open = isinstance(said, TransactionAborted)
                if not (may_be_open and is_problem(answer, Code.TABLE_QUARANTINED)):
                    answers.check(answer, said, published=self.model.of(table).published_version)
            else:
                self._answered(table, proposal, way, answer, outcome, in_index=in_index)
            self._check_settled(table, proposal, outcome, settled)
        self.check(table, rows, files)

    def _left_behind(
        self, table: Table, proposal: Proposal, settled: Ledger, files: Mapping[int, bytes]
    ) -> bool:
        """Whether the proposal landed in the log alone, as the ledger would have landed it."""
        left = self.model.left_behind(table, files)
        if left is None:
            return False
        ledger, landed = settled.propose(table.id, proposal, now_ms=timestamp_in(left))
        assert isinstance(landed, Ratified), f"{landed}, and its file is there"
        assert landed.commit.content == left
        self._check_time(table, ledger.tables[table.id])
        return True

    def _answered(self, table, proposal, way, answer, outcome, *, in_index) -> None:
        if way.put is Put.REFUSED and is_problem(answer, Code.STORAGE_UNAVAILABLE):
            assert not in_index
            return
        assert not isinstance(outcome, WouldCommit), f"did not land: {answer.text}"
        if isinstance(outcome, Ratified) and way.cut is not None and answer.status_code == 200:
            outcome = Replayed(commit=outcome.commit)
        of_the_head = isinstance(outcome, Invalid) and _is_of_the_head(proposal, outcome)
        if of_the_head and way.cut is not None and is_problem(answer, Code.TRANSACTION_ABORTED):
            # Its COMMIT was lost, and what it met then is its own tombstone.
            outcome = TransactionAborted(transaction_id=proposal.transaction_id)
        published = self.model.of(table).published_version
        if way.cut is None or not is_unknown(answer, outcome):
            answers.check(answer, outcome, published=published)
        self.memory.answered(
            table, proposal.transaction_id, proposal.digest(), answer.status_code, answer.json()
        )

    def _check_settled(self, table, proposal, outcome, settled) -> None:
        """What was not looked up in the log makes no difference (I14): the refusal stands, be it
        that the log has another reason for it."""
        if isinstance(outcome, Conflict | VersionNotFound) or (
            isinstance(outcome, Invalid) and proposal.read_version is not None
        ):
            whole = settled.conflict_check(table.id, proposal)
            assert whole == outcome or _is_of_the_id(whole), whole

    def conflict_check(self, table: Table, proposal: Proposal, way: Way) -> None:
        answer = self._send(table, proposal, "conflict-check", way)
        assert answer is not None
        rows, files = self._look(table)
        # It may have been the first look at the log of a table that cannot be published.
        self.model.took_in(table, rows)
        expected = self.model.settled(table).conflict_check(table.id, proposal)
        answers.check(answer, expected, published=self.model.of(table).published_version)
        self.check(table, rows, files)

    def abort(self, table: Table, id_: str, way: Way) -> None:
        self._began_ms = now_ms()
        instance = way.through(self.rig, managed=table.managed)
        path = f"/tables/{table.name}/transactions/{id_}/abort"
        answer = self.rig.run(instance.send("POST", path))
        rows, files = self._look(table)
        self.model.took_in(table, rows)
        known = self.model.of(table).transaction(id_)
        fence = None
        if known is None and not table.managed:
            fence = self._fence(table, id_, rows, files)
        elif known is None and not self.model.is_quarantined(table):
            self.model.abort(table, id_)
        if answer is not None:
            self._abort_answered(table, id_, way, answer, known=known, fenced=fence)
        self.check(table, rows, files)

    def _closes(self, table: Table, proposal: Proposal) -> bool:
        """Whether the proposal's id takes a version where it is refused: another head might have
        made another answer of it, and an attempt of it may be on its way."""
        unseen = self.model.of(table).transaction(proposal.transaction_id) is None
        return unseen and not table.managed and _depends_on_the_head(proposal)

    def _fence(self, table: Table, id_: str, rows: Rows, files: Mapping[int, bytes]) -> bool:
        """Whether the index has the fence; one that only the log has waits."""
        version = self.model.of(table).latest_version + 1
        if version < len(rows.commits):
            content = files[version]
            table.waiting.insert(0, content)
            self.model.took_in(table, rows)
            self._check_time(table, self.model.of(table))
        else:
            left = self.model.left_behind(table, files)
            if left is None:
                return False
            content = left
        (info,) = parse_commit(content)
        assert info == commit_info((info,))
        assert info.operation_parameters == {"transactionId": id_}
        return version < len(rows.commits)

    def _abort_answered(self, table, id_, way, answer, *, known, fenced) -> None:
        if isinstance(known, LandedCommit):
            answers.check_problem(answer, Code.TRANSACTION_COMMITTED)
            assert answer.json()["version"] == known.version
        elif known is None and not fenced and self.model.is_quarantined(table):
            answers.check_problem(answer, Code.TABLE_QUARANTINED)
        elif known is None and fenced is False and way.put is Put.REFUSED:
            answers.check_problem(answer, Code.STORAGE_UNAVAILABLE)
        else:
            assert answer.status_code == 200, answer.text
            assert answer.json()["state"] == "aborted"
            assert self.model.of(table).transaction(id_) is IdState.ABORTED
            settled = self.model.settled(table).tables[table.id]
            assert settled.transaction(id_) is IdState.ABORTED, "it lies in the log"

    def write_past(self, table: Table, past: Past, ids: list[str]) -> None:
        """Another writer puts the next file into the log."""
        settled = self.model.settled(table).tables[table.id]
        if settled.quarantine_reason is not None:
            return
        version = settled.latest_version + 1
        if table.managed:
            version = settled.published_version + 1
            while version in settled.strays:
                version += 1
        claimed = None if past.claims is None or not ids else ids[past.claims % len(ids)]
        snapshot = settled.snapshot(settled.latest_version)
        content = drawing.past_content(
            past, snapshot, latest_ms=settled.latest_timestamp, claimed=claimed
        )
        if past.twin and version <= settled.latest_version:
            content = settled.commits[version].content
        folder = table.location / "_delta_log"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{version:020d}.json").open("xb") as file:
            file.write(content)
        if table.managed:
            self.model.stray(table, version, content)
        else:
            table.waiting.append(content)
        self.check(table)

    def arrive(self, pick: int) -> None:
        """A PUT that was on its way for long reaches the store."""
        scripts = [instance.script for instance in self.rig.instances]
        held = [(script, one) for script in scripts for one in script.held]
        if not held:
            return
        script, one = held[pick % len(held)]
        script.held.remove(one)
        (table,) = (t for t in self.tables if one.location == f"file://{quote(str(t.location))}")
        if self.rig.run(one.arrives()) is PutResult.CREATED:
            known = self.model.of(table)
            if table.managed:
                assert known.commits[one.version].content == one.content
                self.model.stray(table, one.version, one.content)
            else:
                assert one.version == known.latest_version + len(table.waiting) + 1
                settled, id_ = self.model.settled(table).tables[table.id], txn_id(one.content)
                closed = settled.transaction(id_) is IdState.ABORTED
                assert not closed, f"{id_} was closed, and its commit arrived"
                table.waiting.append(one.content)
        self.check(table)

    def check(
        self, table: Table, rows: Rows | None = None, files: Mapping[int, bytes] | None = None
    ) -> None:
        """Everything that holds after every step."""
        if rows is None or files is None:
            rows, files = self._look(table)
        promises.check_index(self.model, table, rows)
        promises.check_log(self.model, table, files)
        self.memory.check(table, rows, files)

    def _send(self, table: Table, proposal: Proposal, path: str, way: Way) -> httpx.Response | None:
        self._began_ms = now_ms()
        instance = way.through(self.rig, managed=table.managed)
        content, kind = drawing.body(proposal, ndjson=way.ndjson)
        return self.rig.run(instance.send("POST", f"/tables/{table.name}/{path}", content, kind))

    def _look(self, table: Table) -> tuple[Rows, dict[int, bytes]]:
        return seen.rows(self.rig.sql, table.id), seen.log(table.location)

    def _check_time(self, table: Table, known: TableLedger) -> None:
        """I12 of the latest commit, made since the request began: the database's clock, or just
        after the version before."""
        before, latest = (commit.timestamp for commit in known.commits[-2:])
        assert latest == before + 1 or self._began_ms <= latest <= now_ms() + 1
        assert latest > before, table


def _depends_on_the_head(proposal: Proposal) -> bool:
    return proposal.read_version is None and not is_invalid_at_any_version(proposal)


def _is_of_the_head(proposal: Proposal, outcome: object) -> bool:
    if isinstance(outcome, Invalid) and outcome.code is Code.TRANSACTION_ID_REUSED:
        return False
    return isinstance(outcome, Invalid | NothingToCommit) and _depends_on_the_head(proposal)


def _is_of_the_id(outcome: ConflictCheckOutcome) -> bool:
    """A refusal that has nothing to do with what the proposal says."""
    reused = isinstance(outcome, Invalid) and outcome.code is Code.TRANSACTION_ID_REUSED
    return reused or isinstance(outcome, Quarantined | TransactionAborted)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
