"""The machine: rules that act on both, in any order, through any instance."""

import sys
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
)

from tests.service.machine import drawing, ways
from tests.service.machine.drawing import Change, Envelope, Past, ReadsDraw, TableDraw
from tests.service.machine.model import Table
from tests.service.machine.races import Races
from tests.service.machine.rig import Rig
from tests.service.machine.ways import Publishing, Way
from tidegate_protocol.proposal.transaction import Proposal

MAX_TABLES = 3

Sent = tuple[Table, Proposal]

picks = st.integers(0, 5)
instances = st.sampled_from("ab")


class ServiceMachine(RuleBasedStateMachine):
    """`tables` are those of the run, `sent` every proposal so far with its table."""

    tables = Bundle("tables")
    sent = Bundle("sent")

    def __init__(self, rig: Rig) -> None:
        super().__init__()
        self.rig = rig
        rig.empty()
        self.both = Races(rig)
        self.ids: dict[Table, list[str]] = {}

    def teardown(self) -> None:
        try:
            # After a failure there is nothing to look at that it has not spoilt.
            if sys.exception() is None:
                self.both.end()
        finally:
            self.rig.forget_scripts()

    @initialize(target=tables, draw=drawing.tables)
    def first_table(self, draw: TableDraw) -> Table:
        return self.both.create(draw)

    @precondition(lambda self: len(self.both.tables) < MAX_TABLES)
    @rule(target=tables, draw=drawing.tables)
    def create(self, draw: TableDraw) -> Table:
        return self.both.create(draw)

    @rule(
        target=sent,
        table=tables,
        change=drawing.changes,
        reads=drawing.reads,
        envelope=drawing.envelopes,
        way=ways.any_way,
    )
    def propose(
        self, table: Table, change: Change, reads: ReadsDraw, envelope: Envelope, way: Way
    ) -> Sent:
        proposal = self._new(table, change, reads, envelope)
        self.both.propose(table, proposal, way)
        return table, proposal

    @rule(target=sent, table=tables, change=drawing.changes, way=ways.any_way)
    def write(self, table: Table, change: Change, way: Way) -> Sent:
        """A writer who is up to date and reads nothing: what it proposes mostly lands."""
        return self.propose(table, change, ReadsDraw(), Envelope(), way)

    @rule(
        target=sent,
        table=tables,
        change=drawing.changes,
        reads=drawing.reads,
        lag=st.integers(1, 3),
        way=ways.any_way,
    )
    def write_late(
        self, table: Table, change: Change, reads: ReadsDraw, lag: int, way: Way
    ) -> Sent:
        """A writer whom others were faster than."""
        return self.propose(table, change, reads, Envelope(lag=lag), way)

    @rule(
        target=sent,
        table=tables,
        change=drawing.changes,
        reads=drawing.reads,
        envelope=drawing.envelopes,
        way=ways.safe,
    )
    def ask_and_propose(
        self, table: Table, change: Change, reads: ReadsDraw, envelope: Envelope, way: Way
    ) -> Sent:
        """A conflict check says what proposing does then."""
        proposal = self._new(table, change, reads, envelope)
        self.both.conflict_check(table, proposal, way)
        self.both.propose(table, proposal, way)
        return table, proposal

    @rule(sent=sent, way=ways.any_way)
    def retry(self, sent: Sent, way: Way) -> None:
        self.both.propose(*sent, way)

    @rule(sent=sent, way=ways.safe)
    def ask_again(self, sent: Sent, way: Way) -> None:
        self.both.conflict_check(*sent, way)

    @rule(
        target=sent,
        sent=sent,
        change=drawing.changes,
        reads=drawing.reads,
        envelope=drawing.envelopes,
        way=ways.any_way,
    )
    def retry_with_another_body(
        self, sent: Sent, change: Change, reads: ReadsDraw, envelope: Envelope, way: Way
    ) -> Sent:
        table, first = sent
        other = self.both.proposal(table, first.transaction_id, change, reads, envelope)
        other = replace(other, engine_info=f"other than {first.engine_info}")
        self.both.propose(table, other, way)
        return table, other

    @rule(
        target=sent,
        table=tables,
        drawn=st.lists(st.tuples(drawing.changes, drawing.reads), min_size=2, max_size=3),
        alike=st.sampled_from(["", "", "id", "id and body"]),
    )
    def propose_at_once(
        self, table: Table, drawn: list[tuple[Change, ReadsDraw]], alike: str
    ) -> Any:
        """Several writers, or copies of one request, through both instances."""
        if table.waiting:
            return multiple()
        proposals = [self._new(table, *each, Envelope()) for each in drawn]
        if alike:
            first = proposals[0]
            proposals = [replace(p, transaction_id=first.transaction_id) for p in proposals]
        if alike == "id and body":
            proposals = [first] * len(drawn)
        self.both.propose_at_once(table, proposals)
        return multiple(*((table, proposal) for proposal in proposals))

    @rule(
        target=sent,
        first=tables,
        second=tables,
        drawn=st.lists(
            st.tuples(st.booleans(), drawing.changes, drawing.reads, drawing.lags),
            min_size=2,
            max_size=5,
        ),
        alike=st.sampled_from(["", "", "id", "id and body"]),
        way=ways.group_ways,
    )
    def propose_together(
        self,
        first: Table,
        second: Table,
        drawn: list[tuple[bool, Change, ReadsDraw, int | None]],
        alike: str,
        way: Way,
    ) -> Any:
        """Writers of one table or two whom one instance puts into groups."""
        if first.waiting or second.waiting:
            return multiple()
        proposed: list[Sent] = []
        for to_second, change, reads, lag in drawn:
            table = second if to_second else first
            # Judged at the head, what may be refused there takes a version then, which no order
            # of the requests alone makes.
            envelope = Envelope(lag=0 if drawing.NO_VALUE in change.adds else lag)
            proposed.append((table, self._new(table, change, reads, envelope)))
        if alike:
            table, copied = proposed[0]
            same = table, copied
            if alike == "id":
                body = proposed[1][1]
                same = table, replace(body, transaction_id=copied.transaction_id)
            proposed.append(same)
        self.both.propose_together(proposed, way)
        return multiple(*proposed)

    @rule(sent=sent, way=ways.safe | ways.losing)
    def abort(self, sent: Sent, way: Way) -> None:
        table, proposal = sent
        self.both.abort(table, proposal.transaction_id, way)

    @rule(
        target=sent,
        table=tables,
        change=drawing.changes,
        reads=drawing.reads,
        envelope=drawing.envelopes,
        way=ways.safe | ways.losing,
    )
    def abort_before(
        self, table: Table, change: Change, reads: ReadsDraw, envelope: Envelope, way: Way
    ) -> Sent:
        """The abort comes before the proposal, which may still come."""
        proposal = self._new(table, change, reads, envelope)
        self.both.abort(table, proposal.transaction_id, way)
        return table, proposal

    @rule(table=tables, past=drawing.pasts)
    def write_past(self, table: Table, past: Past) -> None:
        self.both.write_past(table, past, self.ids.get(table, []))

    @precondition(lambda self: any(i.script.held for i in self.rig.instances))
    @rule(pick=picks)
    def arrive(self, pick: int) -> None:
        self.both.arrive(pick)

    @precondition(lambda self: self.both.lagging)
    @rule(instance=instances)
    def publish(self, instance: str) -> None:
        self.both.publish_all(getattr(self.rig, instance))

    @precondition(lambda self: self.both.lagging)
    @rule(pick=picks, how=ways.publishing)
    def publish_and_fail(self, pick: int, how: Publishing) -> None:
        lagging = self.both.lagging
        self.both.publish_and_fail(lagging[pick % len(lagging)], how)

    @rule(instance=instances)
    def restart(self, instance: str) -> None:
        self.both.restart(getattr(self.rig, instance))

    @rule(table=tables, instance=instances, back=picks)
    def read(self, table: Table, instance: str, back: int) -> None:
        self.both.read(table, getattr(self.rig, instance), back, self.ids.get(table, [])[-3:])

    @rule(table=tables, instance=instances)
    def rebuild(self, table: Table, instance: str) -> None:
        self.both.rebuild(table, getattr(self.rig, instance))

    @precondition(lambda self: len(self.both.tables) < MAX_TABLES)
    @rule(target=tables, table=tables, instance=instances)
    def register_copy(self, table: Table, instance: str) -> Any:
        copy = self.both.register_copy(table, getattr(self.rig, instance))
        return multiple() if copy is None else copy

    def _new(self, table: Table, change: Change, reads: ReadsDraw, envelope: Envelope) -> Proposal:
        ids = self.ids.setdefault(table, [])
        ids.append(f"{table.name}-{len(ids)}")
        return self.both.proposal(table, ids[-1], change, reads, envelope)
