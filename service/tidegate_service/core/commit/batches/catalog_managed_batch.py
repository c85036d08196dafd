"""A catalog-managed table's commits: they land by the COMMIT of the group's transaction, which
holds their bytes. The publisher writes the files afterwards.

After a crash, the primary may show a commit that its synchronous standby never had, since its
COMMIT was cut off. A client that is told of the commit may find it gone once the standby takes
over. So such an answer is given after a COMMIT of the section, which makes the standby receive all
that came before it: taking the row's lock is a write.
"""

from collections.abc import Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.catalog_managed.set_back import check_log
from tidegate_service.core.commit.batches.table_batch import TableBatch, untaken
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.observe.faults import Step, around, steps_of
from tidegate_service.core.ports.index import CommitGroup, CommitSection
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome
from tidegate_service.core.ports.records import Aborted, CommitRecord, RatifiedCommit, TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import check_open


class CatalogManagedBatch(TableBatch):
    """Asks nothing of the store, except where the table has to be looked at."""

    steps = steps_of(catalog_managed=True)
    is_published = False

    @staticmethod
    async def record(context: Context, group: CommitGroup, batches: Sequence[TableBatch]) -> None:
        async with around(context.faults, Step.M5_INSERT):
            for batch in batches:
                await batch.section.flush()
        await group.save()

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
            # It tells of the head.
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
        raise Unavailable(
            f"{behind} versions of table {table.name} wait for publishing, as many as may; nothing "
            "was done",
            code=Code.BACKPRESSURE,
        )
