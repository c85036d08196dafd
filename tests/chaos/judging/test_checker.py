"""The judge finds nothing in a good history, and each kind of damage in one that has it."""

import hashlib
import json
from dataclasses import replace

import pytest

from tests.chaos.judging.checker import check
from tests.chaos.judging.history import (
    AbortedBy,
    Answer,
    Final,
    History,
    Looked,
    Proposed,
    ReadBytes,
    Row,
    Work,
)
from tests.chaos.judging.violations import Kind

TABLE = "main.t.one"
VERSIONS = 12


def work_of(version: int) -> Work:
    """Every third version works on the register, which version 1 fills."""
    if version % 3 != 1:
        return Work(table=TABLE, id=f"id-{version}", adds=((f"a/{version}", "a"),))
    before = f"r/{version - 3}" if version > 1 else None
    return Work(
        table=TABLE,
        id=f"id-{version}",
        adds=((f"r/{version}", "r"),),
        removes=() if before is None else (before,),
        read_version=version - 1,
        read=frozenset({"r"}),
        register=None if before is None else "r",
        parent=before,
    )


def bytes_of(version: int, work: Work, **info: object) -> bytes:
    marks = {"txnId": work.id, "inCommitTimestamp": 1000 + version, "tidegate": {}, **info}
    lines: list[dict[str, object]] = [{"commitInfo": marks}]
    lines.extend({"remove": {"path": path}} for path in work.removes)
    lines.extend({"add": {"path": path, "partitionValues": {"p": p}}} for path, p in work.adds)
    if work.app is not None:
        lines.append({"txn": {"appId": work.app, "version": 1}})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def row_of(version: int, work: Work, content: bytes) -> Row:
    return Row(
        version=version,
        id=work.id,
        timestamp=1000 + version,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def acked(version: int, /, **changes: object) -> Proposed:
    values = {
        "work": work_of(version),
        "sent": version * 10.0,
        "answered": version * 10.0 + 5,
        "answer": Answer.LANDED,
        "version": version,
        "timestamp": 1000 + version,
        **changes,
    }
    return Proposed(**values)


def good() -> History:
    """Versions 1 to 12 one after another, each acked, read and looked at; 3 and 7 sent twice."""
    calls: list[object] = []
    works = {0: Work(table=TABLE, id="creation", adds=())}
    for version in range(1, VERSIONS + 1):
        works[version] = work_of(version)
        if version in (3, 7):
            calls.append(acked(version, answer=Answer.UNKNOWN, version=None, timestamp=None))
        calls.append(acked(version))
        at = version * 10.0 + 6
        calls.append(
            Looked(table=TABLE, sent=at, answered=at + 1, version=version, published=version)
        )
    lost = Work(table=TABLE, id="loser", adds=(("a/lost", "a"),), read_version=2)
    calls.append(Proposed(work=lost, sent=1.0, answered=2.0, answer=Answer.NEVER, code="c"))
    calls.append(AbortedBy(table=TABLE, id="aborted", sent=1.0, answered=2.0))
    log = {version: bytes_of(version, work) for version, work in works.items()}
    for version in (2, 5):
        sha256 = hashlib.sha256(log[version]).hexdigest()
        calls.append(ReadBytes(table=TABLE, version=version, sha256=sha256))
    rows = tuple(row_of(version, work, log[version]) for version, work in works.items())
    final = Final(table=TABLE, catalog_managed=True, log=log, rows=rows)
    return History(calls=calls, finals={TABLE: final})


def with_version(history: History, version: int, work: Work, **info: object) -> History:
    """The history with another commit in the place of one, for the service and in the log."""
    final = history.finals[TABLE]
    content = bytes_of(version, work, **info)
    rows = tuple(
        row_of(version, work, content) if row.version == version else row for row in final.rows
    )
    final = replace(final, log={**final.log, version: content}, rows=rows)
    return History(calls=history.calls, finals={TABLE: final})


def with_calls(history: History, *calls: object) -> History:
    return History(calls=[*history.calls, *calls], finals=history.finals)


def without_the_end(history: History) -> History:
    """Version 12 is nowhere, though it was acked: a failover lost it."""
    final = history.finals[TABLE]
    log = {version: content for version, content in final.log.items() if version != VERSIONS}
    final = replace(final, log=log, rows=final.rows[:-1])
    return History(calls=history.calls, finals={TABLE: final})


def changed(history: History, version: int, **changes: object) -> History:
    """The history in which an acked call was different."""
    calls = [
        replace(call, **changes)
        if isinstance(call, Proposed) and call.version == version and call.answer is Answer.LANDED
        else call
        for call in history.calls
    ]
    return History(calls=calls, finals=history.finals)


def with_final(history: History, **changes: object) -> History:
    return History(calls=history.calls, finals={TABLE: replace(history.finals[TABLE], **changes)})


def without_log(history: History, version: int) -> History:
    log = dict(history.finals[TABLE].log)
    del log[version]
    return with_final(history, log=log)


def stale(history: History) -> History:
    looked = Looked(table=TABLE, sent=100.0, answered=101.0, version=4, published=4)
    return with_calls(history, looked)


def shrunk(history: History) -> History:
    looked = Looked(table=TABLE, sent=200.0, answered=201.0, version=12, published=3)
    return with_calls(history, looked)


def second_landing(history: History) -> History:
    """A lost success taken for a conflict, and committed again (as delta-rs did)."""
    return with_version(history, 9, replace(work_of(8), id="id-8"))


def same_file_again(history: History) -> History:
    return with_version(history, 9, replace(work_of(9), adds=work_of(8).adds))


def forked(history: History) -> History:
    """Somebody read other bytes of a version than those in the log."""
    return with_calls(history, ReadBytes(table=TABLE, version=4, sha256="0" * 64))


def published_differently(history: History) -> History:
    final = history.finals[TABLE]
    rows = tuple(replace(row, sha256="0" * 64) if row.version == 4 else row for row in final.rows)
    return with_final(history, rows=rows)


def refused_and_landed(history: History) -> History:
    call = acked(6, answer=Answer.NEVER, version=None, timestamp=None, code="concurrent-append")
    return with_calls(history, call)


def aborted_and_landed(history: History) -> History:
    return with_calls(history, AbortedBy(table=TABLE, id="id-6", sent=61.0, answered=62.0))


def two_answers(history: History) -> History:
    return with_calls(history, acked(6, version=7, timestamp=1007))


def another_time(history: History) -> History:
    return with_calls(history, acked(6, timestamp=999))


def late_order(history: History) -> History:
    return changed(history, 5, sent=100.0, answered=101.0)


def lost_update(history: History) -> History:
    work = replace(work_of(7), removes=(), parent="r/1")
    return with_version(changed(history, 7, work=work), 7, work)


def unsafe(history: History) -> History:
    work = replace(work_of(9), read=frozenset({"a"}), read_version=3)
    return with_version(changed(history, 9, work=work), 9, work)


def unsafe_of_the_whole_table(history: History) -> History:
    work = replace(work_of(9), read_version=7, whole_table=True)
    return with_version(changed(history, 9, work=work), 9, work)


def overtaken_in_its_application(history: History) -> History:
    """Versions 5 and 9 write to one application; the later one had not seen the earlier."""
    for version in (6, 9):
        work = replace(work_of(version), read_version=version - 5, app="stream")
        history = with_version(changed(history, version, work=work), version, work)
    return history


def double_delete(history: History) -> History:
    work = replace(work_of(9), removes=("r/1",))
    return with_version(changed(history, 9, work=work), 9, work)


def equal_times(history: History) -> History:
    final = history.finals[TABLE]
    rows = tuple(replace(row, timestamp=1003) if row.version == 4 else row for row in final.rows)
    return with_final(history, rows=rows)


def without_in_commit_time(history: History) -> History:
    return with_version(history, 5, work_of(5), inCommitTimestamp=None)


def stranger(history: History) -> History:
    return with_version(history, 5, replace(work_of(5), id="who"))


SEEDED = [
    (lambda history: without_log(history, 6), Kind.GAP),
    (lambda history: without_log(history, 12), Kind.PUBLISHED),
    (without_the_end, Kind.LOST),
    (lambda history: with_version(history, 6, replace(work_of(6), adds=())), Kind.LOST),
    (second_landing, Kind.DUPLICATE),
    (same_file_again, Kind.DUPLICATE),
    (refused_and_landed, Kind.LANDED_AFTER_ALL),
    (aborted_and_landed, Kind.LANDED_AFTER_ALL),
    (two_answers, Kind.REPLAY_DIFFERS),
    (another_time, Kind.REPLAY_DIFFERS),
    (forked, Kind.OTHER_BYTES),
    (late_order, Kind.ORDER),
    (stale, Kind.STALE_READ),
    (lost_update, Kind.LOST_UPDATE),
    (unsafe, Kind.UNSAFE_ACCEPT),
    (unsafe_of_the_whole_table, Kind.UNSAFE_ACCEPT),
    (overtaken_in_its_application, Kind.UNSAFE_ACCEPT),
    (double_delete, Kind.UNSAFE_ACCEPT),
    (published_differently, Kind.PUBLISHED),
    (shrunk, Kind.PUBLISHED),
    (equal_times, Kind.TIMESTAMP),
    (without_in_commit_time, Kind.TIMESTAMP),
    (stranger, Kind.STRANGER),
]


def test_a_good_history_is_good():
    assert check(good()) == []


@pytest.mark.parametrize(("damage", "kind"), SEEDED)
def test_damage_is_found(damage, kind):
    assert kind in {violation.kind for violation in check(damage(good()))}


def test_what_read_what_it_landed_over_is_good():
    history = good()
    for version in (6, 9):
        work = replace(work_of(version), read_version=version - 1, app="stream", whole_table=True)
        history = with_version(changed(history, version, work=work), version, work)
    assert check(history) == []


def test_every_kind_is_seeded():
    assert {kind for _, kind in SEEDED} == set(Kind)


def test_what_nobody_heard_of_again_may_have_landed_or_not():
    history = good()
    unknown = acked(12, answer=Answer.UNKNOWN, version=None, timestamp=None)
    never_seen = replace(unknown, work=replace(work_of(12), id="gone", adds=(("a/g", "a"),)))
    kept = [call for call in history.calls if getattr(call, "version", None) != 12]
    either = History(calls=[*kept, unknown, never_seen], finals=history.finals)
    assert check(either) == []


def test_commits_at_one_time_may_land_in_either_order():
    history = changed(changed(good(), 5, sent=50.0, answered=70.0), 6, sent=49.0, answered=71.0)
    assert check(history) == []


@pytest.mark.parametrize(("date", "found"), [(1003, []), (1002, [Kind.TIMESTAMP])])
def test_a_version_whose_date_nobody_knows_is_passed_over(date, found):
    """Version 3 has none, and 4 is dated after 2."""
    history = changed(changed(good(), 3, timestamp=None), 4, timestamp=date)
    for version in (3, 4):
        history = with_version(history, version, work_of(version), inCommitTimestamp=None)
    known = {3: None, 4: date}
    rows = tuple(
        replace(row, timestamp=known.get(row.version, row.timestamp))
        for row in history.finals[TABLE].rows
    )
    history = with_final(history, catalog_managed=False, rows=rows)
    assert [violation.kind for violation in check(history)] == found
