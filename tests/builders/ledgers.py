"""States that a transaction read, commits that won, and the ledger with a table to propose to."""

from typing import Any

from tests.builders.actions import commit_info, metadata, protocol
from tests.builders.proposals import proposal
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import Created, Ratified
from tidegate_protocol.log.actions import Action, Metadata, Protocol
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import PreparedTransaction, ReadState, WinningCommit
from tidegate_protocol.replay.commits import summarize

TABLE = "t"
NOW = 1_800_000_000_000
NO_TABLE = ReadState(version=-1, protocol=None, metadata=None)


def state(
    table_metadata: Metadata | None = None,
    table_protocol: Protocol | None = None,
    *,
    version: int = 0,
) -> ReadState:
    """A table of one integer column `v`, reader 1 and writer 2, unless told otherwise."""
    return ReadState(
        version=version,
        protocol=table_protocol or protocol(),
        metadata=table_metadata or metadata(),
    )


def prepared(*actions: Action, at: ReadState | None = None, **fields: Any) -> PreparedTransaction:
    """A valid transaction that read version 0 of `state()`, or what `at` says."""
    read = at or state()
    result = prepare(proposal(*actions, read_version=read.version, **fields), read)
    assert isinstance(result, PreparedTransaction), result
    return result


def winner(
    *actions: Action, version: int = 1, operation: str | None = "WRITE", blind: bool = False
) -> WinningCommit:
    """A commit that won `version`; `blind` is what its commitInfo claims."""
    info: dict[str, Any] = {"timestamp": NOW, "isBlindAppend": blind}
    if operation is not None:
        info["operation"] = operation
    return summarize(version, (commit_info(**info), *actions), timestamp=0)


def ledger(
    table_metadata: Metadata | None = None, table_protocol: Protocol | None = None
) -> Ledger:
    """A ledger with the table `TABLE` at version 0."""
    first = proposal(
        table_protocol or protocol(),
        table_metadata or metadata(),
        read_version=-1,
        operation="CREATE TABLE",
    )
    made, outcome = Ledger().create(TABLE, first, now_ms=NOW)
    assert isinstance(outcome, Created), outcome
    return made


def landed(before: Ledger, *actions: Action, now_ms: int = NOW, **fields: Any) -> Ledger:
    """The ledger after one more commit to `TABLE`, read at its latest version."""
    fields.setdefault("read_version", before.tables[TABLE].latest_version)
    after, outcome = before.propose(TABLE, proposal(*actions, **fields), now_ms=now_ms)
    assert isinstance(outcome, Ratified), outcome
    return after
