"""What is wrong with a world that has ended: the chaos judge, and what only a simulation can see.

The chaos judge (`tests/chaos/judging/checker.py`) compares what clients were told with what lies in
storage. Here a log is all that was ever in it: what others cleaned up was there. Beside that: a
version that was written twice, a table that no commit gets into any more once all trouble is over,
a defect, and (`judge_refusals`) a refusal that no state of the log bears out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from tests.chaos.judging.checker import check
from tests.chaos.judging.history import AbortedBy, Answer, Call, Final, History, Proposed, Row, Work
from tests.chaos.judging.log_reading import read_commit
from tests.chaos.judging.violations import Kind, Violation
from tests.simulation.judging.judge_refusals import CODES, wrong_refusals
from tests.simulation.ports.rows import Rows
from tests.simulation.ports.store import Folder
from tests.simulation.worlds.plan import Plan
from tests.simulation.worlds.works import TABLE
from tidegate_protocol.base.problems import PROBLEMS, Code
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.ports.records import TableState

FINAL = (409, 410, 422)
LONGEST_HOLD_S = 150.0
"""Whatever becomes of who holds a row, the database has an end of it by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """All that the judge knows. `former` are the folders that the table had before it was deleted,
    `restored` when the database went back and the ids that only it had held; `stuck` is why no
    commit got in at the end, where none did; `missing` are data files that the log names; `begun`
    are the tables that the database went back to, with the SHA-256 of their version 0."""

    plan: Plan
    calls: Sequence[Call]
    proposals: dict[Work, Proposal]
    folder: Folder
    former: Sequence[Folder]
    rows: Rows | None
    restored: Sequence[tuple[float, set[str]]]
    stuck: str | None
    missing: Sequence[str]
    longest_hold_s: float
    begun: Mapping[str, str | None]
    defects: Sequence[str]


def judge(ended: Ended) -> list[Violation]:
    found = [
        *(Violation(Kind.GAP, TABLE, f"a defect: {defect}") for defect in ended.defects),
        *(
            Violation(Kind.OTHER_BYTES, TABLE, f"version {version} was written twice")
            for folder in (ended.folder, *ended.former)
            for version in folder.rewritten
        ),
    ]
    if ended.stuck is not None:
        found.append(Violation(Kind.PUBLISHED, TABLE, f"no commit gets in: {ended.stuck}"))
    if is_anothers(ended):
        found.append(Violation(Kind.OTHER_BYTES, TABLE, "its rows are of another table's log"))
    found += [
        Violation(Kind.LOST, TABLE, f"the data file {path} of a landed commit was deleted")
        for path in ended.missing
    ]
    if ended.longest_hold_s > LONGEST_HOLD_S:
        detail = f"its row was locked for {ended.longest_hold_s:.0f} s"
        found.append(Violation(Kind.PUBLISHED, TABLE, detail))
    history = History(calls=list(_calls(ended)))
    history.finals[TABLE] = _final(ended, history.calls)
    found += check(history)
    # Of a catalog-managed table the log tells later what there was.
    if not ended.former and not ended.plan.catalog_managed:
        found += wrong_refusals(history.calls, ended.proposals, ended.folder)
    return found


def is_anothers(ended: Ended) -> bool:
    """Whether the index has another table's version 0 under the id of one."""
    rows = ended.rows
    if rows is None or rows.record.first_version > 0 or not rows.commits:
        return False
    sha256 = rows.commits[0].record.content_sha256
    return ended.begun.get(rows.record.id, sha256) != sha256


def _calls(ended: Ended) -> Iterator[Call]:
    """What was told and still has to hold: not what the database lost that was only there, and
    not what landed in a folder that its owner has deleted. A call that says of its own copy alone
    that it was not executed says nothing of the others."""
    gone: set[str] = set()
    for _, only_here in ended.restored:
        gone |= only_here
    at = max((when for when, _ in ended.restored), default=-1.0)
    at = at if ended.plan.catalog_managed else -1.0
    # Who deletes a table deletes what was promised of its ids.
    at = max(at, *(folder.deleted_s for folder in ended.former), -1.0)
    copies = Counter(call.work.id for call in ended.calls if isinstance(call, Proposed))
    for call in ended.calls:
        if isinstance(call, AbortedBy):
            if at < call.sent:
                yield call
        elif isinstance(call, Proposed):
            is_void = (
                call.work.id in gone
                or (at >= call.sent and call.answer is Answer.NEVER)
                or any(holds(folder, call) for folder in ended.former)
            )
            is_of_itself = (
                call.answer is Answer.NEVER
                and copies[call.work.id] > 1
                and status_of(call.code) not in FINAL
            )
            if is_void or is_of_itself:
                yield replace(call, answer=Answer.UNKNOWN, version=None, timestamp=None)
            else:
                yield call
        else:
            yield call


def status_of(code: str) -> int | None:
    return PROBLEMS[Code(code)].status if code in CODES else 409


def holds(folder: Folder, call: Proposed) -> bool:
    """Whether what was acked lies there."""
    if call.answer is not Answer.LANDED or call.version is None:
        return False
    written = folder.written.get(call.version)
    return written is not None and f'"{call.work.id}"'.encode() in written[0]


def _final(ended: Ended, calls: Sequence[Call]) -> Final:
    log = {version: content for version, (content, _) in ended.folder.written.items()}
    managed = ended.plan.catalog_managed
    rows = list(_rows(ended.rows, log)) if ended.rows is not None else []
    if ended.rows is None or ended.rows.record.state is TableState.QUARANTINED:
        # Nobody answers for it, or it says so itself: the log is judged alone.
        rows = list(_of_log(log, calls, max(log, default=-1) + 1))
    elif rows and rows[0].version > 0:
        rows = [*_of_log(log, calls, rows[0].version), *rows]
    return Final(table=TABLE, catalog_managed=managed, log=log, rows=tuple(rows))


def _rows(rows: Rows, log: dict[int, bytes]) -> Iterator[Row]:
    """As the service has them; a base whose commit was cleaned up has nothing of its bytes."""
    for commit in rows.commits:
        record = commit.record
        yield Row(
            version=record.version,
            id=record.transaction_id,
            timestamp=record.timestamp,
            sha256=record.content_sha256 or sha256(log.get(record.version, b"")).hexdigest(),
        )


def _of_log(log: dict[int, bytes], calls: Sequence[Call], end: int) -> Iterator[Row]:
    """Rows that the service does not have any more, or never had, as the log has them. How it
    dated other writers' versions, nobody knows."""
    told = {
        call.version: call.timestamp
        for call in calls
        if isinstance(call, Proposed) and call.version is not None
    }
    for version in sorted(version for version in log if version < end):
        carried = read_commit(version, log[version]).in_commit_timestamp
        at = told.get(version) if carried is None else carried
        yield Row(version=version, id=None, timestamp=at, sha256=sha256(log[version]).hexdigest())
