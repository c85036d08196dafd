"""Proposals put to a ledger, or to a table's state, and what they are told."""

from typing import Any

from tests.builders.ledgers import NOW, TABLE, state
from tests.builders.proposals import proposal
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import Conflict, Invalid, ReadState


def answer(before: Ledger, *actions: Action, read_version: int | None = 0, **fields: Any) -> Any:
    """What a transaction that read version 0 of the ledger's table is told now."""
    offer = proposal(*actions, read_version=read_version, **fields)
    return before.propose(TABLE, offer, now_ms=NOW)[1]


def code(before: Ledger, *actions: Action, **fields: Any) -> Code:
    """The code of the conflict that it is told."""
    outcome = answer(before, *actions, **fields)
    assert isinstance(outcome, Conflict), outcome
    return outcome.code


def foreign(before: Ledger, *actions: Action) -> Ledger:
    """The ledger after another writer's next version."""
    return before.foreign_commit(TABLE, encode_lines(actions), modified_ms=NOW)[0]


def refused(*actions: Action, at: ReadState | None = None, **fields: Any) -> Invalid:
    """Why a proposal is not valid at a version of a table."""
    read = at or state()
    fields.setdefault("read_version", read.version)
    outcome = prepare(proposal(*actions, **fields), read)
    assert isinstance(outcome, Invalid), outcome
    return outcome
