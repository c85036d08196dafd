"""What the service has to answer where the ledger says so."""

from typing import Any, assert_never

import httpx

from tidegate_protocol.base.problems import PROBLEMS, Code
from tidegate_protocol.ledger.outcomes import (
    ConflictCheckOutcome,
    LandedCommit,
    NothingToCommit,
    ProposeOutcome,
    Quarantined,
    Ratified,
    Replayed,
    TableNotFound,
    TransactionAborted,
    VersionNotFound,
    WouldCommit,
)
from tidegate_protocol.log.actions import Add, Remove
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_protocol.replay.commits import commit_info

Outcome = ProposeOutcome | ConflictCheckOutcome


def check(answer: httpx.Response, outcome: Outcome, *, published: int) -> None:
    """Hold the answer to a proposal or a conflict check against what the ledger answered.

    `published` is the last published version when the answer was given.
    """
    body = answer.json()
    match outcome:
        case Ratified(commit=commit) | Replayed(commit=commit):
            replayed = isinstance(outcome, Replayed)
            assert answer.status_code == (200 if replayed else 201), answer.text
            _same(body, _of_landed(commit))
            if "committed" in body:
                assert body["committed"]
                return
            _same(
                body,
                {
                    "timestamp": commit.timestamp,
                    "replayed": replayed,
                    "published": commit.version <= published,
                },
            )
            _same(body["metrics"], _metrics(commit))
        case WouldCommit():
            assert answer.status_code == 200, answer.text
            _same(
                body,
                {
                    "committed": False,
                    "version": outcome.version,
                    "read_version": outcome.read_version,
                    "rebased_over": outcome.rebased_over,
                    "isolation_level": outcome.isolation_level.value,
                    "is_blind_append": outcome.is_blind_append,
                },
            )
        case NothingToCommit():
            assert answer.status_code == 200, answer.text
            _same(body, {"version": None, "read_version": outcome.read_version})
        case Conflict():
            check_problem(answer, outcome.code)
            _same(body, {"detail": outcome.detail})
            expected = {
                "version": outcome.winner.version,
                "operation": outcome.winner.operation,
                "path": outcome.path,
                "partition": outcome.partition,
                "app_id": outcome.app_id,
                "domain": outcome.domain,
            }
            _same(body["conflict"], expected)
        case Invalid():
            check_problem(answer, outcome.code)
            if outcome.code is not Code.TRANSACTION_ID_REUSED:
                _same(body, {"detail": outcome.detail})
        case TransactionAborted():
            check_problem(answer, Code.TRANSACTION_ABORTED)
        case VersionNotFound():
            check_problem(answer, Code.VERSION_NOT_FOUND)
        case Quarantined():
            check_problem(answer, Code.TABLE_QUARANTINED)
        case TableNotFound():
            check_problem(answer, Code.TABLE_NOT_FOUND)
        case _:
            assert_never(outcome)


def check_problem(answer: httpx.Response, code: Code) -> None:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    _same(answer.json(), {"code": code.value, "status": PROBLEMS[code].status})
    assert answer.status_code == PROBLEMS[code].status


def is_unknown(answer: httpx.Response, outcome: Outcome) -> bool:
    """Whether the answer is that nobody knows, in place of a refusal which would be true of the
    last attempt alone: what became of the one before, whose group was lost, it does not say."""
    of_one_attempt = isinstance(outcome, Quarantined | TableNotFound | VersionNotFound)
    return of_one_attempt and is_problem(answer, Code.COMMIT_STATE_UNKNOWN)


def is_problem(answer: httpx.Response, code: Code) -> bool:
    return answer.is_error and answer.json()["code"] == code.value


def _of_landed(commit: LandedCommit) -> dict[str, Any]:
    info = commit_info(commit.actions)
    assert info is not None
    read_version = info.read_version
    return {
        "version": commit.version,
        "transaction_id": commit.transaction_id,
        "read_version": read_version,
        "rebased_over": 0 if read_version is None else commit.version - read_version - 1,
        "isolation_level": info.isolation_level,
        "is_blind_append": info.is_blind_append,
    }


def _metrics(commit: LandedCommit) -> dict[str, int]:
    adds = [action for action in commit.actions if isinstance(action, Add)]
    removes = [action for action in commit.actions if isinstance(action, Remove)]
    return {
        "num_added_files": len(adds),
        "num_removed_files": len(removes),
        "bytes_added": sum(action.size for action in adds),
        "bytes_removed": sum(action.size or 0 for action in removes),
    }


def _same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Every expected field is there; None also where it is left out."""
    assert {name: found.get(name) for name in expected} == expected, found
