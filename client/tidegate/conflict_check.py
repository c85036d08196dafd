"""What proposing a transaction now would come to, and what it is made of, in words."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from tidegate.answers import decoded
from tidegate.errors import TidegateError, UnexpectedAnswer
from tidegate.wire.exchange import Response
from tidegate_protocol.base.text import excerpt, some
from tidegate_protocol.log.actions import Action, Add, Metadata, Remove, Txn
from tidegate_protocol.log.codec import encode
from tidegate_protocol.log.statistics import FileStatistics, InvalidStatistics
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal, Reads


class ConflictCheck(Struct, frozen=True, kw_only=True):
    """What proposing a transaction now would come to; nothing of it was written.

    It would land as `version`, past `rebased_over` winners, or has landed there (`committed`).
    """

    transaction_id: str
    committed: bool
    version: int
    read_version: int
    isolation_level: IsolationLevel
    is_blind_append: bool
    rebased_over: int


def conflict_checked(response: Response, *, transaction_id: str) -> ConflictCheck:
    """Raises `UnexpectedAnswer` also for the check of another transaction."""
    check = decoded(response, ConflictCheck)
    if check.transaction_id != transaction_id:
        raise UnexpectedAnswer(
            f"expected a check of transaction {transaction_id}, "
            f"found one of {excerpt(check.transaction_id)}",
            status=response.status,
        )
    return check


def explanation(proposal: Proposal, *, table: str, verdict: ConflictCheck | TidegateError) -> str:
    """A transaction's reads, actions and verdict, a line each."""
    return "\n".join(
        [
            f"Transaction {proposal.transaction_id} of {table} at version {proposal.read_version}",
            *(f"  reads: {text}" for text in _reads(proposal.reads)),
            *(f"  actions: {text}" for text in _actions(proposal.actions)),
            f"  as {proposal.operation}: {_verdict(verdict)}",
        ]
    )


def _reads(reads: Reads) -> Iterator[str]:
    if reads.whole_table:
        yield "the whole table"
    for predicate in reads.predicates:
        yield f"rows where {predicate}"
    if reads.files:
        yield f"{len(reads.files)} files"
    if reads.app_ids:
        yield f"how far the applications {some(reads.app_ids)} have come"
    if reads.nothing and not reads.app_ids:
        yield "nothing"


def _actions(actions: tuple[Action, ...]) -> Iterator[str]:
    adds = [action for action in actions if isinstance(action, Add)]
    if adds:
        size = sum(add.size for add in adds)
        yield f"adds {len(adds)} files, {_rows(adds)}, {size} bytes"
    removes = [action for action in actions if isinstance(action, Remove)]
    if removes:
        yield f"removes {len(removes)} files"
    for action in actions:
        match action:
            case Add() | Remove():
                continue
            case Txn():
                yield f"records version {action.version} of the application {action.app_id}"
            case Metadata():
                yield "changes the metadata"
            case _:
                yield excerpt(encode(action))
    if not actions:
        yield "none"


def _rows(adds: Iterable[Add]) -> str:
    rows = 0
    for add in adds:
        try:
            known = None if add.stats is None else FileStatistics.parse(add.stats).num_records
        except InvalidStatistics:
            known = None
        if known is None:
            return "rows not known"
        rows += known
    return f"{rows} rows"


def _verdict(verdict: ConflictCheck | TidegateError) -> str:
    if isinstance(verdict, TidegateError):
        return f"would be refused ({type(verdict).__name__}): {verdict}"
    if verdict.committed:
        return f"has landed as version {verdict.version}"
    blind = ", a blind append" if verdict.is_blind_append else ""
    return (
        f"would land as version {verdict.version}, past {verdict.rebased_over} commits, "
        f"under {verdict.isolation_level}{blind}"
    )
