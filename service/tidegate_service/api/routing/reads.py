"""The world for calls that read a table's latest version, or what was made of it."""

from fastapi import Request

from tidegate_service.api.http.request.requests import context_of, gate_of, state_of
from tidegate_service.core.context import Context
from tidegate_service.core.maintenance.freshness import plain_table, read_in


async def context_of_read(
    request: Request, table: str, *, through: int | None = None, at_any_age: bool = True
) -> Context:
    """The world, once `read_in` has had the index read the log of a plain table. A read gives up
    its turn meanwhile. Raises as `read_in` does."""
    context, state, gate = context_of(request), state_of(request), gate_of(request)
    plain = await plain_table(context, table)
    if plain is not None:
        principal = state.reads_for
        gate.end_read(state)
        await read_in(context, plain, through=through, at_any_age=at_any_age)
        if principal is not None:
            await gate.begin_read(principal, state)
    return context
