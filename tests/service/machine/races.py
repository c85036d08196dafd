"""Requests at the same time: what comes of them is what some order of them would have made."""

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence

import httpx

from tests.service.machine import answers, drawing
from tests.service.machine.answers import is_problem, is_unknown
from tests.service.machine.commits import now_ms
from tests.service.machine.model import Table, timestamp_in, txn_id
from tests.service.machine.rig import Instance
from tests.service.machine.seen import Rows
from tests.service.machine.upkeep import Upkeep
from tests.service.machine.ways import Way
from tests.service.machine.wire import Put
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.outcomes import Ratified, Replayed
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_protocol.replay.commits import body_digest, commit_info, parse_commit

Sent = tuple[Table, Proposal]
Told = tuple[Proposal, httpx.Response | None]


class Races(Upkeep):
    def propose_at_once(self, table: Table, proposals: list[Proposal]) -> None:
        """Each through another instance. Nothing waits in the table's log."""
        given = self.rig.run(self._race(table, proposals))
        rows, files = self._look(table)
        before = self.model.ledger
        told = []
        for order in itertools.permutations(zip(proposals, given, strict=True)):
            self.model.ledger = before
            try:
                self._in_order(table, order, rows)
                self.check(table, rows, files)
            except AssertionError as error:
                told.append(error)
            else:
                break
        else:
            raise ExceptionGroup("no order of the requests makes this", told)
        for proposal, answer in zip(proposals, given, strict=True):
            self.memory.answered(
                table, proposal.transaction_id, proposal.digest(), answer.status_code, answer.json()
            )

    def propose_together(self, sent: Sequence[Sent], way: Way) -> None:
        """All through one instance, which decides in groups. Nothing waits in the tables' logs."""
        self._began_ms = now_ms()
        for managed in {table.managed for table, _ in sent}:
            instance = way.through(self.rig, managed=managed)
        given = self.rig.run(instance.send_all([_request(*one, way) for one in sent]))
        for table in dict.fromkeys(table for table, _ in sent):
            told = [
                (proposal, answer)
                for (of, proposal), answer in zip(sent, given, strict=True)
                if of is table
            ]
            self._explain(table, told, way)

    def _explain(self, table: Table, told: Sequence[Told], way: Way) -> None:
        """Some order of the requests makes what they were told and what is there now."""
        rows, files = self._look(table)
        before, head = self.model.ledger, self.model.of(table).latest_version
        left = [] if table.managed else _beyond(len(rows.commits), files)
        landed = [row.transaction_id for row in rows.commits[head + 1 :]]
        known = {*landed, *rows.aborted}
        took_part: list[Told] = []
        for proposal, answer in told:
            if answer is None:
                if proposal.transaction_id in known:
                    took_part.append((proposal, answer))
            elif way.put is Put.REFUSED and is_problem(answer, Code.STORAGE_UNAVAILABLE):
                # So this copy did nothing.
                continue
            else:
                took_part.append((proposal, answer))
        table.waiting.extend(left)
        reasons = []
        for order in _orders(took_part, landed):
            self.model.ledger = before
            try:
                self._made(table, order, rows, way)
                self.check(table, rows, files)
            except AssertionError as error:
                reasons.append(error)
            else:
                break
        else:
            raise ExceptionGroup("no order of the requests makes this", reasons)
        self._check_times(rows, head)
        unheard = [proposal for proposal, answer in told if answer is None]
        self._check_left(table, left, unheard)
        for proposal, answer in told:
            if answer is not None:
                self.memory.answered(
                    table,
                    proposal.transaction_id,
                    proposal.digest(),
                    answer.status_code,
                    answer.json(),
                )

    def _made(self, table: Table, order: Sequence[Told], rows: Rows, way: Way) -> None:
        self._marked(table, rows)
        for proposal, answer in order:
            self._heed(table, answer, rows)
            versions = self.model.of(table).latest_version
            outcome = self.model.proposed(table, proposal, rows, answered=answer is not None)
            if isinstance(outcome, Ratified):
                assert self.model.of(table).latest_version == versions + 1, "did not land"
            if answer is None:
                continue
            if isinstance(outcome, Ratified) and way.fails and answer.status_code == 200:
                # Its group was lost, and it found itself there.
                outcome = Replayed(commit=outcome.commit)
            if way.fails and is_unknown(answer, outcome):
                continue
            answers.check(answer, outcome, published=self.model.of(table).published_version)
        self.model.looked_at(table, rows)

    def _check_times(self, rows: Rows, head: int) -> None:
        """I12 of all versions after the head."""
        for before, row in itertools.pairwise(rows.commits[head:]):
            assert row.timestamp == before.timestamp + 1 or (
                self._began_ms <= row.timestamp <= now_ms() + 1
            )

    def _check_left(self, table: Table, left: Sequence[bytes], unheard: list[Proposal]) -> None:
        """What lies in the log alone is what the ledger would have landed, of those who heard
        nothing."""
        ledger = self.model.ledger
        for content in left:
            (proposal,) = {p.digest(): p for p in unheard if _is_of(content, p)}.values()
            at = timestamp_in(content)
            ledger, outcome = ledger.propose(table.id, proposal, now_ms=at)
            assert isinstance(outcome, Ratified), f"{outcome}, and its file is there"
            assert outcome.commit.content == content

    async def _race(self, table: Table, proposals: list[Proposal]) -> list[httpx.Response]:
        instances = itertools.cycle((self.rig.a, self.rig.b))
        sent = (
            self._sent(table, instance, proposal)
            for instance, proposal in zip(instances, proposals, strict=False)
        )
        return list(await asyncio.gather(*sent))

    async def _sent(self, table: Table, instance: Instance, proposal: Proposal) -> httpx.Response:
        content, kind = drawing.body(proposal, ndjson=False)
        answer = await instance.send("POST", f"/tables/{table.name}/commits", content, kind)
        assert answer is not None
        return answer

    def _in_order(
        self, table: Table, order: tuple[tuple[Proposal, httpx.Response], ...], rows: Rows
    ) -> None:
        self._marked(table, rows)
        for proposal, answer in order:
            self._heed(table, answer, rows)
            outcome = self.model.proposed(table, proposal, rows, answered=True)
            published = self.model.of(table).published_version
            answers.check(answer, outcome, published=published)
        self.model.looked_at(table, rows)

    def _marked(self, table: Table, rows: Rows) -> None:
        if table.managed:
            self.model.marked(table, rows)

    def _heed(self, table: Table, answer: httpx.Response | None, rows: Rows) -> None:
        """An instance that looked at a table says so to whoever it looked for."""
        if answer is not None and is_problem(answer, Code.TABLE_QUARANTINED):
            self.model.looked_at(table, rows)


def _request(table: Table, proposal: Proposal, way: Way) -> tuple[str, bytes, str]:
    return f"/tables/{table.name}/commits", *drawing.body(proposal, ndjson=way.ndjson)


def _beyond(first: int, files: Mapping[int, bytes]) -> list[bytes]:
    """The files from this version on, which follow each other."""
    found: list[bytes] = []
    while (content := files.get(first + len(found))) is not None:
        found.append(content)
    return found


def _orders(told: Sequence[Told], landed: Sequence[str | None]) -> Iterator[Sequence[Told]]:
    """Those in which what landed can have done so in the order of the versions."""
    for order in itertools.permutations(told):
        ids = (proposal.transaction_id for proposal, _ in order)
        # Each behind the one before; copies that were refused may come earlier.
        if all(id_ in ids for id_ in landed):
            yield order


def _is_of(content: bytes, proposal: Proposal) -> bool:
    info = commit_info(parse_commit(content))
    assert info is not None
    return txn_id(content) == proposal.transaction_id and body_digest(info) == proposal.digest()
