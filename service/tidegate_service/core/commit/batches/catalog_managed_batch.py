"""A catalog-managed table's commits: they land by the COMMIT of the group's transaction, which
has their bytes. The publisher writes the files afterwards.

After a crash, the primary may show a commit that its synchronous standby never had, since the
commit's COMMIT was cut off. A client that is told of the commit may find it gone once the standby
takes over. So an answer that rests on such a commit is given after a COMMIT of the section. The
section has written something, since taking the row's lock is a write. So its COMMIT waits until the
standby has all that came before.
"""

from collections.abc import Sequence

from tidegate_protocol.prepare.prepare import is_invalid_at_any_version
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.catalog_managed.set_back import check_ahead, check_log, needs_check
from tidegate_service.core.commit.batches.table_batch import TableBatch, untaken
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Backlog, Refused, Unavailable
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.observe.faults import Step, around
from tidegate_service.core.ports.index import CommitGroup, CommitSection
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome
from tidegate_service.core.ports.records import Aborted, CommitRecord, RatifiedCommit, TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import check_open


class CatalogManagedBatch(TableBatch):
    """Asks nothing of the store, except where the table's log has to be checked."""

    @staticmethod
    async def record(context: Context, group: CommitGroup, batches: Sequence[TableBatch]) -> None:
        async with around(context.faults, Step.M5_INSERT):
            for batch in batches:
                await batch.section.flush()
        await group.save()
        for batch in batches:
            table, database = batch.section.table, batch.section.database
            context.heads.replicated.remember(table, database=database)

    @staticmethod
    def needs_check(context: Context, section: CommitSection) -> bool:
        return needs_check(context, section)

    @staticmethod
    async def check_ahead(context: Context, table: TableIdentity, sight: SeenBefore) -> bool:
        head = context.heads.known(table.id)
        is_due = head is None or head.is_due(context.monotonic_s())
        return is_due and sight.is_empty and await check_ahead(context, table.id, sight)

    @staticmethod
    async def check_log(context: Context, section: CommitSection, sight: SeenBefore) -> None:
        await check_log(context, section, sight)

    @staticmethod
    async def read_in(context: Context, section: CommitSection, sight: SeenBefore) -> bool:
        # Nobody writes past the service. The section is saved, since a commit that it shows may
        # still wait for its standby.
        return True

    @staticmethod
    async def shut_out(
        context: Context,
        section: CommitSection,
        sight: SeenBefore,
        transaction_id: str,
        known: CommitRecord | Aborted | None,
    ) -> CommitRecord | Aborted | None:
        # The id may have landed as a version that this database has lost.
        check_open(section.table)
        await check_log(context, section, sight)
        return known

    @staticmethod
    def is_undone_by(error: Exception) -> bool:
        # Before COMMIT the index refused a value that it cannot hold.
        return isinstance(error, Refused)

    def ended(self, context: Context) -> None:
        if self.must_save:
            context.wake_publisher(self.section.table.id)

    async def land(self, member: WaitingProposal) -> Outcome:
        try:
            outcome = await super().land(member)
        except Refused:
            # The id's row does not say when it was written, so the standby may not have it yet.
            self.must_save = True
            raise
        if isinstance(outcome, Committed):
            self.must_save = True
        elif isinstance(outcome, NothingToCommit):
            # The answer tells of the head.
            self.must_save |= not self._is_replicated(member.context)
        elif isinstance(outcome, Conflict | Invalid):
            lasts = await self._outlives_database(member.context, member.proposal, outcome)
            self.must_save |= not lasts
        return outcome

    async def _outlives_database(
        self, context: Context, proposal: Proposal, refusal: Conflict | Invalid
    ) -> bool:
        """Whether the commits that the refusal rests on outlive the section's database. If they do
        not, a proposal that was told never to land may land where a standby takes over."""
        if self._is_replicated(context):
            return True
        if isinstance(refusal, Conflict):
            return False
        return await offload.run(offload.weight_of(proposal), is_invalid_at_any_version, proposal)

    def _is_replicated(self, context: Context) -> bool:
        section = self.section
        return context.heads.replicated.has(section.table, database=section.database)

    async def _append(self, ready: ReadyCommit, commit: RatifiedCommit) -> None:
        try:
            await self.locked.append(commit)
        except (Refused, Unavailable) as error:
            raise untaken(error, ready.transaction.proposal.transaction_id) from error

    async def _check_further(self, context: Context, proposal: Proposal) -> None:
        _check_backlog(context, self.section.table)
        await check_log(context, self.section, self.sight)

    async def _is_its_own(self, context: Context, ready: ReadyCommit) -> bool:
        # Only the holder of the row's lock writes versions.
        return True

    async def _is_at_end(self, context: Context, proposal: Proposal, *, fences: bool) -> bool:
        return True


def _check_backlog(context: Context, table: TableHead) -> None:
    behind = table.latest_version - table.published_version
    if behind >= context.max_unpublished_versions:
        raise Backlog(
            f"{behind} versions of table {table.name} wait for publishing, as many as may; nothing "
            "was done"
        )
