"""What proposals say of the files that are live at their read versions, compared with the index."""

from collections.abc import Iterable, Mapping
from functools import partial

from tidegate_protocol.features.table_features import may_have_vectors
from tidegate_protocol.prepare import live_files
from tidegate_protocol.prepare.live_files import Assumed, FileAssumptions, assumptions_of
from tidegate_protocol.proposal.transaction import Invalid, Proposal
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.ports.index import CommitGroup, CommitSection
from tidegate_service.core.sharing import offload


async def look_up_assumptions(
    group: CommitGroup, waiting: Mapping[str, Iterable[WaitingProposal]]
) -> None:
    """Have what a group's proposals, which wait by table, assume of live files looked up at once.
    For a proposal of many actions that is done when it is decided."""
    asked: dict[str, dict[str, Assumed]] = {}
    for table_id, section in group.sections.items():
        table = section.table
        vectors = may_have_vectors(table.protocol)
        for proposal in [member.proposal for member in waiting[table_id]]:
            version = proposal.read_version
            if proposal.weight >= offload.HEAVY or (version or 0) > table.latest_version:
                continue
            assumptions = assumptions_of(proposal.actions, vectors=vectors)
            if assumptions.count:
                read = table.latest_version if version is None else version
                asked.setdefault(table_id, {})[proposal.transaction_id] = assumptions, read
    if asked:
        await group.expect_assumptions(asked)


async def check_assumptions(
    section: CommitSection, proposal: Proposal, assumptions: FileAssumptions, version: int
) -> Invalid | None:
    """Why the proposal is invalid for the files that are live at its read version."""
    if not assumptions.count:
        return None
    broken = await section.broken(proposal.transaction_id, assumptions, version)
    if not broken:
        return None
    check = partial(
        live_files.check_assumptions, proposal.actions, assumptions, broken, version=version
    )
    return await offload.run(len(proposal.actions), check)
