"""Schedules (`tests/conflict_schedules.py`) put to our rules."""

import json
from collections.abc import Sequence

from tests.builders.proposals import reads
from tests.conflict_schedules import Line, Schedule
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Action, Metadata, Protocol
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    IsolationLevel,
    PreparedTransaction,
    Proposal,
    ReadState,
)
from tidegate_protocol.replay.commits import summarize


def judged(schedule: Schedule) -> PreparedTransaction | Conflict | Invalid:
    """What becomes of A."""
    start = _decoded(schedule.start)
    (metadata,) = (action for action in start if isinstance(action, Metadata))
    (protocol,) = (action for action in start if isinstance(action, Protocol))
    level = schedule.isolation_level
    proposal = Proposal(
        transaction_id="a",
        operation=schedule.operation,
        actions=_decoded(schedule.actions),
        read_version=0,
        reads=reads(
            *(" AND ".join(f"({part})" for part in scan) for scan in schedule.predicates),
            whole_table=schedule.whole_table,
            files=schedule.files,
            app_ids=schedule.app_ids,
        ),
        isolation_level=None if level is None else IsolationLevel(level),
    )
    read = ReadState(version=0, protocol=protocol, metadata=metadata, row_id_high_water_mark=99)
    prepared = prepare(proposal, read)
    if isinstance(prepared, Invalid):
        return prepared
    winners = [
        summarize(version, _decoded(lines), timestamp=0)
        for version, lines in enumerate(schedule.winners, start=1)
    ]
    return check_conflicts(prepared, winners)


def _decoded(lines: Sequence[Line]) -> tuple[Action, ...]:
    return tuple(codec.decode(json.dumps(line).encode()) for line in lines)
