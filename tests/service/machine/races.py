"""Requests at the same time: what comes of them is what some order of them would have made."""

import asyncio
import itertools

import httpx

from tests.service.machine import answers, drawing
from tests.service.machine.model import Table
from tests.service.machine.rig import Instance
from tests.service.machine.seen import Rows
from tests.service.machine.upkeep import Upkeep
from tidegate_protocol.transaction import Proposal


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
        for proposal, answer in order:
            outcome = self.model.proposed(table, proposal, rows, answered=True)
            published = self.model.of(table).published_version
            answers.check(answer, outcome, published=published)
