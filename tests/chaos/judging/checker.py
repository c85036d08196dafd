"""The judge of a history: what clients were told against what is in storage.

It knows nothing of how the service works. The oracle for conflicts is its own: a commit that read
partitions, or the whole table, must not land over one that added or removed a file there, nor one
that read an application over another that wrote to it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.judging.checking_time import check_order, check_reads
from tests.chaos.judging.history import (
    AbortedBy,
    Answer,
    Final,
    History,
    Looked,
    Proposed,
    ReadBytes,
    Work,
)
from tests.chaos.judging.log_reading import LogCommit, read_log
from tests.chaos.judging.violations import Kind, Violation

FENCE = "ABORT TRANSACTION"


def check(history: History) -> list[Violation]:
    """Everything that is wrong with it; nothing is, where the list is empty."""
    found: list[Violation] = []
    for final in history.finals.values():
        proposed = [
            call
            for call in history.calls
            if isinstance(call, Proposed) and call.work.table == final.table
        ]
        aborted = [
            call
            for call in history.calls
            if isinstance(call, AbortedBy) and call.table == final.table
        ]
        looked = [
            call for call in history.calls if isinstance(call, Looked) and call.table == final.table
        ]
        read = [
            call
            for call in history.calls
            if isinstance(call, ReadBytes) and call.table == final.table
        ]
        commits = read_log(final.log)
        findings = (
            _gaps(final),
            _ids(commits, proposed),
            _answers(commits, proposed, aborted),
            _replays(proposed),
            _bytes(final, commits, read),
            _updates(commits, proposed),
            _timestamps(final, commits, proposed),
            check_order(commits, proposed, looked),
            check_reads(proposed, looked),
        )
        for finding in findings:
            found.extend(Violation(kind, final.table, detail) for kind, detail in finding)
    return found


Found = Iterator[tuple[Kind, str]]


def _gaps(final: Final) -> Found:
    for what, versions in (
        ("the log", sorted(final.log)),
        ("the service", [row.version for row in final.rows]),
    ):
        if versions != list(range(len(versions))):
            yield Kind.GAP, f"{what} has the versions {versions}"
    if len(final.log) != len(final.rows):
        yield (
            Kind.PUBLISHED,
            f"{len(final.log)} versions in the log, {len(final.rows)} in the service",
        )


def _ids(commits: list[LogCommit], proposed: list[Proposed]) -> Found:
    landings = defaultdict(list)
    for commit in commits:
        if commit.id is not None:
            landings[commit.id].append(commit)
    known = {call.work.id for call in proposed}
    for transaction_id, landed in landings.items():
        versions = [commit.version for commit in landed]
        if len(landed) > 1:
            yield Kind.DUPLICATE, f"{transaction_id} landed as {versions}"
        ours = versions[0] == 0 or landed[0].operation == FENCE
        if transaction_id not in known and not ours:
            yield Kind.STRANGER, f"version {versions[0]} is {transaction_id}, which nobody proposed"
    added = Counter(path for commit in commits for path, _ in commit.adds)
    for path, times in added.items():
        if times > 1:
            yield Kind.DUPLICATE, f"{path} was added {times} times"


def _landed_as(commits: list[LogCommit]) -> dict[str, LogCommit]:
    return {commit.id: commit for commit in commits if commit.id is not None}


def _is(work: Work, commit: LogCommit) -> bool:
    """Whether this body is the one that landed under its id."""
    return commit.added_paths == {path for path, _ in work.adds}


def _answers(commits: list[LogCommit], proposed: list[Proposed], aborted: list[AbortedBy]) -> Found:
    landed = _landed_as(commits)
    for call in proposed:
        commit = landed.get(call.work.id)
        here = commit is not None and _is(call.work, commit)
        if call.answer is Answer.LANDED and (
            commit is None or not here or commit.version != call.version
        ):
            where = "nowhere" if commit is None else f"version {commit.version}"
            yield Kind.LOST, f"{call.work.id} was acked as version {call.version} and is {where}"
        if call.answer is Answer.NEVER and here:
            assert commit is not None
            yield (
                Kind.LANDED_AFTER_ALL,
                f"{call.work.id} was answered {call.code} and is version {commit.version}",
            )
    for abort in aborted:
        if abort.id in landed:
            version = landed[abort.id].version
            yield Kind.LANDED_AFTER_ALL, f"{abort.id} was aborted and is version {version}"


def _replays(proposed: list[Proposed]) -> Found:
    answers = defaultdict(set)
    for call in proposed:
        if call.answer is Answer.LANDED:
            answers[call.work.id].add((call.version, call.timestamp))
    for transaction_id, told in answers.items():
        if len(told) > 1:
            yield Kind.REPLAY_DIFFERS, f"{transaction_id} was answered {sorted(told)}"


def _bytes(final: Final, commits: list[LogCommit], read: list[ReadBytes]) -> Found:
    in_log = {commit.version: commit.sha256 for commit in commits}
    for row in final.rows:
        if in_log.get(row.version) != row.sha256:
            yield Kind.PUBLISHED, f"version {row.version} in the log is not what the service holds"
    for call in read:
        if in_log.get(call.version) != call.sha256:
            yield Kind.OTHER_BYTES, f"version {call.version} was read with other bytes"


def _updates(commits: list[LogCommit], proposed: list[Proposed]) -> Found:
    """Plays the log, and judges each commit by what was live and what came since its read."""
    works = {(call.work.id, frozenset(call.work.adds)): call.work for call in proposed}
    live: dict[str, str] = {}
    touched: dict[str, list[int]] = defaultdict(list)
    wrote: dict[str, int] = {}
    for commit in commits:
        work = works.get((commit.id or "", frozenset(commit.adds)))
        if work is not None:
            yield from _judged(commit, work, live, touched)
            yield from _judged_by_application(commit, work, wrote)
        for path in commit.removes:
            if path not in live:
                yield Kind.UNSAFE_ACCEPT, f"version {commit.version} removes {path}, which is gone"
            else:
                touched[live.pop(path)].append(commit.version)
        for path, partition in commit.adds:
            live[path] = partition
            touched[partition].append(commit.version)
        wrote |= dict.fromkeys(commit.apps, commit.version)


def _judged_by_application(commit: LogCommit, work: Work, wrote: dict[str, int]) -> Found:
    if work.app is None or work.read_version is None:
        return
    last = wrote.get(work.app, -1)
    if last > work.read_version:
        yield (
            Kind.UNSAFE_ACCEPT,
            f"version {commit.version} read application {work.app} at {work.read_version}, and "
            f"version {last} wrote to it",
        )


def _judged(
    commit: LogCommit, work: Work, live: dict[str, str], touched: dict[str, list[int]]
) -> Found:
    if work.read_version is not None:
        for partition in sorted(touched if work.whole_table else work.read):
            last = touched[partition][-1] if touched[partition] else -1
            if last > work.read_version:
                yield (
                    Kind.UNSAFE_ACCEPT,
                    f"version {commit.version} read {partition} at {work.read_version}, and "
                    f"version {last} changed it",
                )
    if work.register is not None:
        there = [path for path, partition in live.items() if partition == work.register]
        if there != ([] if work.parent is None else [work.parent]):
            yield (
                Kind.LOST_UPDATE,
                f"version {commit.version} read {work.parent} in {work.register}, which held "
                f"{there}",
            )


def _timestamps(final: Final, commits: list[LogCommit], proposed: list[Proposed]) -> Found:
    times = {row.version: row.timestamp for row in final.rows}
    before = -1
    for row in final.rows:
        if row.timestamp is None:
            continue
        if row.timestamp <= before:
            yield Kind.TIMESTAMP, f"version {row.version} at {row.timestamp}, after {before}"
        before = row.timestamp
    for commit in commits:
        told = commit.in_commit_timestamp
        if told is not None and told != times.get(commit.version):
            yield Kind.TIMESTAMP, f"version {commit.version} carries {told}"
        if final.catalog_managed and told is None:
            yield Kind.TIMESTAMP, f"version {commit.version} carries no in-commit timestamp"
    for call in proposed:
        if call.version is not None and times.get(call.version) not in (None, call.timestamp):
            yield Kind.TIMESTAMP, f"version {call.version} was answered with {call.timestamp}"
