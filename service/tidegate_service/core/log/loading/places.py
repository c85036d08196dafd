"""Which files outside of a table's folder its writers may name, as a shallow clone's are.

Whoever reads the table reads them by rights of their own (`core.log.loading.data_paths`). So they
lie in the warehouse or at an allowed location, and who adds one has to be a reader of the scope
whose folder it is in: a writer must not lead others to what they may not read themselves. Removing
one takes no more than writing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.proposal.transaction import Invalid, Proposal
from tidegate_service.core.access.roles import Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Forbidden, Refused
from tidegate_service.core.log.loading.data_paths import DataPaths, is_plain
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.sharing import offload

A_PATH = 10
"""To look into an absolute path takes as long as so many actions."""


async def misplaced(
    context: Context, location: str, proposal: Proposal, *, shared: bool = False
) -> Invalid | None:
    """What is wrong with the places of the files that a proposal to the table at `location` names.
    Raises as `misplaced_in`, and `TakesLong` in a `shared` group whose others would wait."""
    weight = offload.weight_of(proposal)
    if weight < offload.HEAVY:
        looked_into = sum(not is_plain(file) for _, file in _files(proposal.actions))
        if not looked_into:
            return None
        weight = max(weight, A_PATH * looked_into)
        if shared and weight >= offload.HEAVY:
            raise TakesLong
    return await offload.run(weight, misplaced_in, context, location, proposal.actions)


def misplaced_in(context: Context, location: str, actions: Sequence[Action]) -> Invalid | None:
    """The same of actions. Raises `Forbidden` for files that the caller may not read: a refusal
    that says nothing of an attempt which somebody else made, or the caller with other rights."""
    named = DataPaths(location=location, policy=context.locations, reader=None)
    principal = context.caller.principal
    readable = None if principal.may_everywhere(Role.READER) else replace(named, reader=principal)
    for index, file in _files(actions):
        try:
            named.check(file)
        except Refused as refused:
            return Invalid(
                code=refused.code, detail=refused.detail, action_index=index, path=file.path
            )
        if readable is not None and isinstance(file, Add):
            try:
                readable.check(file)
            except Refused as refused:
                raise Forbidden(refused.detail) from None
    return None


def _files(actions: Sequence[Action]) -> Iterator[tuple[int, Add | Remove]]:
    """The files that are named, each with its place among the actions."""
    for index, action in enumerate(actions):
        # Those that are spooled lie inside of the table.
        if type(action) in (Add, Remove):
            assert isinstance(action, Add | Remove)
            yield index, action
