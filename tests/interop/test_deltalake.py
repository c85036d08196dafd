"""`deltalake` writes to a plain table past the service, alone and while others go through it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import CommitProperties, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.interop.tables import (
    append,
    batch,
    check_agreement,
    folder_of,
    new_table,
    replace,
    rows_of,
    theirs,
)
from tidegate import (
    CommitStateUnknown,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConflictError,
    MetadataChangedException,
)
from tidegate_protocol.base.problems import Code

NO_RETRIES = CommitProperties(max_commit_retries=0)
# What follows a commit is tested by its own name.
NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def append_past(table, writer, numbers):
    rows = batch(writer, numbers)
    again(
        lambda: write_deltalake(
            theirs(table), rows, mode="append", post_commithook_properties=NO_HOOKS
        )
    )


def again(work):
    """Do it until it does not lose: to deltalake, too, another one may have been first."""
    while True:
        try:
            return work()
        except CommitFailedError:
            continue


class TestOneAfterTheOther:
    def test_what_it_does_to_rows_is_there_for_the_next_commit(self, table):
        append(table, "ours", range(4))
        append_past(table, "theirs", range(6))
        append(table, "ours", range(4, 6))
        theirs(table).delete("writer = 'theirs' AND n < 2")
        theirs(table).update(predicate="writer = 'theirs' AND n = 5", new_values={"n": 50})
        append(table, "ours", range(6, 8))
        write_deltalake(
            theirs(table), batch("theirs", [9]), mode="overwrite", predicate="writer = 'theirs'"
        )
        append(table, "ours", [8])
        assert rows_of(theirs(table)) == [("ours", n) for n in range(9)] + [("theirs", 9)]
        check_agreement(table)

    def test_files_it_puts_together_are_one_for_the_next_commit(self, table):
        for n in range(4):
            append(table, "ours", [n])
        done = theirs(table).optimize.compact()
        assert (done["numFilesAdded"], done["numFilesRemoved"]) == (1, 4)
        append(table, "ours", [4])
        assert len(table.scan().files) == 2
        replace(table.transaction(), table, "ours", [7])
        assert rows_of(theirs(table)) == [("ours", 7)]
        check_agreement(table)

    def test_a_merge_is_there_for_the_next_commit(self, table):
        append(table, "ours", range(4))
        merge = theirs(table).merge(
            batch("ours", [2, 3, 9]), "s.writer = t.writer AND s.n = t.n", "s", "t"
        )
        merge.when_matched_delete().when_not_matched_insert_all().execute()
        append(table, "ours", [20])
        assert rows_of(theirs(table)) == [("ours", n) for n in (0, 1, 9, 20)]
        check_agreement(table)

    def test_it_goes_on_after_the_service(self, table):
        log = theirs(table)
        append(table, "ours", range(3))
        # It finds what was committed since it loaded the table.
        write_deltalake(log, batch("theirs", [1]), mode="append")
        with pytest.raises(CommitFailedError):
            append_between(table)
        append(table, "ours", [9])
        check_agreement(table)


def append_between(table):
    """Delete with deltalake what the service has replaced since deltalake looked."""
    log = theirs(table)
    replace(table.transaction(), table, "ours", [4])
    log.delete("writer = 'ours'", commit_properties=NO_RETRIES)


class TestConflicts:
    """The service judges by versions that were never its own."""

    @pytest.mark.parametrize(
        ("foreign", "error"),
        [
            (lambda table: append_past(table, "ours", [7]), ConcurrentAppendException),
            (lambda table: theirs(table).delete("writer = 'ours'"), ConcurrentDeleteReadException),
            (lambda table: theirs(table).optimize.compact(), ConcurrentAppendException),
            (
                lambda table: theirs(table).alter.set_table_properties(
                    {"delta.logRetentionDuration": "interval 40 days"}
                ),
                MetadataChangedException,
            ),
        ],
        ids=["append", "delete", "compact", "properties"],
    )
    def test_what_it_changes_makes_a_reader_of_it_lose(self, table, foreign, error):
        append(table, "ours", [1])
        append(table, "ours", [2])
        txn = table.transaction()
        read = txn.filter_files("writer = 'ours'")
        assert len(read) == 2
        foreign(table)
        with pytest.raises(error) as lost:
            replace(txn, table, "ours", [3])
        assert isinstance(lost.value, ConflictError)
        assert lost.value.conflict.version == 3
        replace(table.transaction(), table, "ours", [3])
        check_agreement(table)

    def test_what_it_changes_elsewhere_does_not(self, table):
        append(table, "ours", [1])
        txn = table.transaction()
        append_past(table, "theirs", [7])
        receipt = replace(txn, table, "ours", [3])
        assert (receipt.version, receipt.rebased_over) == (3, 1)
        assert rows_of(theirs(table)) == [("ours", 3), ("theirs", 7)]


class TestAtOnce:
    def test_nothing_is_lost_among_writers_of_both_kinds(self, table):
        ours, appends, foreign = 3, 6, 2

        def through(writer):
            for n in range(appends):
                append(table, f"ours-{writer}", [2 * n, 2 * n + 1])

        def past(writer):
            name = f"theirs-{writer}"
            for n in range(appends):
                append_past(table, name, [2 * n, 2 * n + 1])
                if n == 2:
                    again(lambda n=n: theirs(table).delete(f"writer = '{name}' AND n = {2 * n}"))
                if n == 4:
                    again(
                        lambda: write_deltalake(
                            theirs(table),
                            batch(name, range(100, 110)),
                            mode="overwrite",
                            predicate=f"writer = '{name}'",
                        )
                    )

        with ThreadPoolExecutor(ours + foreign) as pool:
            work = [pool.submit(through, n) for n in range(ours)]
            work += [pool.submit(past, n) for n in range(foreign)]
            for done in work:
                done.result()
        last = append(table, "ours-0", [1000])
        kept = [10, 11, *range(100, 110)]
        expected = [(f"theirs-{n}", number) for n in range(foreign) for number in kept]
        expected += [(f"ours-{n}", number) for n in range(ours) for number in range(2 * appends)]
        assert rows_of(theirs(table)) == sorted([*expected, ("ours-0", 1000)])
        foreign_commits = [commit for commit in table.history() if commit.foreign]
        assert len(foreign_commits) == foreign * (appends + 2)
        assert last.version == ours * appends + foreign * (appends + 2) + 1
        check_agreement(table)


class TestWhatTheLogHides:
    def test_a_checkpoint_of_its_own_changes_nothing(self, table):
        for n in range(3):
            append(table, "ours", [n])
        append_past(table, "theirs", [1])
        theirs(table).create_checkpoint()
        append(table, "ours", [3])
        assert rows_of(theirs(table)) == [*(("ours", n) for n in range(4)), ("theirs", 1)]
        check_agreement(table)

    def test_vacuum_takes_only_what_nobody_reads(self, table):
        for n in range(3):
            append(table, "ours", [n])
        replace(table.transaction(), table, "ours", [9])
        gone = theirs(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
        assert len(gone) == 3
        append(table, "ours", [10])
        assert rows_of(theirs(table)) == [("ours", 9), ("ours", 10)]
        check_agreement(table)

    def test_a_log_that_it_cleaned_up_goes_on(self, lake):
        table = new_table(lake, **{"delta.logRetentionDuration": "interval 0 seconds"})
        for n in range(4):
            append(table, "ours", [n])
        log = theirs(table)
        log.create_checkpoint()
        log.cleanup_metadata()
        assert not log_file(table, 0).exists()
        assert len(table.scan(version=2).files) == 2
        append(table, "ours", [4])
        append_past(table, "theirs", [0])
        append(table, "ours", [5])
        assert rows_of(theirs(table)) == [*(("ours", n) for n in range(6)), ("theirs", 0)]
        check_agreement(table, first_in_log=5)

    def test_an_unreadable_version_is_nothing_to_build_on(self, table):
        append(table, "ours", [1])
        half = '{"add":{"path":"half'
        log_file(table, 2).write_text(half)
        # Not whether an earlier copy of this proposal landed, but that the table takes none.
        with pytest.raises(CommitStateUnknown, match="version 2") as refused:
            append(table, "ours", [2])
        assert refused.value.code == Code.TABLE_QUARANTINED
        assert table.scan().version == 1
        assert log_file(table, 2).read_text() == half


def log_file(table, version):
    return folder_of(table) / "_delta_log" / f"{version:020}.json"
