"""A transaction id that was proposed before: the first answer to it counts."""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.refusals import aborted
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import Aborted, TableState
from tidegate_service.core.sharing import offload


async def landed_before(section: CommitSection, proposal: Proposal) -> Committed | None:
    """The first answer to this transaction id, or None for a new one.

    Raises `Refused` for an id that was aborted or that landed with another body. Raises
    `TableQuarantined` for a new id: a quarantined table still answers for ids that it knows.
    """
    known = await section.transaction(proposal.transaction_id)
    table = section.table
    if isinstance(known, Aborted):
        raise aborted(proposal.transaction_id)
    if known is not None:
        digest = await offload.run(offload.weight_of(proposal), proposal.digest)
        if known.body_digest != digest:
            raise Refused(
                f"transaction id {excerpt(proposal.transaction_id)} landed as version "
                f"{known.version} with another body; an id names one body for ever",
                code=Code.TRANSACTION_ID_REUSED,
                hint="use a new transaction id for new work",
                version=known.version,
            )
        return Committed(
            table=table,
            record=known,
            published=known.version <= table.published_version,
            replayed=True,
        )
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")
    return None
