"""One active transaction a thread and table, and transactions at any version."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tidegate
from tests.client.tables import append, data_file, new_table
from tidegate.active import active_transaction


class TestActive:
    def test_a_second_one_of_the_table_is_refused(self, table, lake):
        with table.transaction() as txn:
            second = lake.table(table.id).transaction()
            with pytest.raises(tidegate.TransactionActive, match=txn.id) as raised, second:
                raise AssertionError("it was entered")
            assert raised.value.definite
            assert "one at a time" in str(raised.value)
            with pytest.raises(tidegate.TransactionActive), txn:
                raise AssertionError("it was entered a second time")
            assert active_transaction(table.id) is txn
            txn.add([data_file("a")])
            assert txn.commit("WRITE").version == 1

    def test_other_tables_have_their_own(self, table, lake):
        other = new_table(lake)
        with table.transaction() as first, other.transaction() as second:
            assert active_transaction(table.id) is first
            assert active_transaction(other.id) is second

    def test_it_ends_with_its_block_however_that_is_left(self, table):
        with pytest.raises(ZeroDivisionError), table.transaction():
            raise ZeroDivisionError
        assert active_transaction(table.id) is None
        with table.transaction():
            assert active_transaction(table.id) is not None
        assert active_transaction(table.id) is None

    def test_it_ends_with_its_commit(self, table):
        with table.transaction() as txn:
            txn.add([data_file("a")])
            txn.commit("WRITE")
            assert active_transaction(table.id) is None
            append(table, data_file("b"))
        assert table.version == 2

    def test_threads_do_not_see_each_others(self, table):
        with table.transaction() as txn, ThreadPoolExecutor(1) as pool:

            def elsewhere():
                assert active_transaction(table.id) is None
                return append(table, data_file("theirs"))

            assert pool.submit(elsewhere).result().version == 1
            txn.add([data_file("ours")])
            assert txn.commit("WRITE").version == 2


class TestVersions:
    def test_one_may_begin_at_any_version(self, table):
        append(table, data_file("a", 5))
        with table.transaction() as txn:
            txn.update_metadata(comment="new")
            txn.commit("COMMENT")
        old = table.transaction(version=1)
        assert (old.read_version, old.metadata.description) == (1, None)
        assert len(old.filter_files("month = 5")) == 1
        assert table.transaction(version=2).metadata.description == "new"
        old.add([data_file("b", 5)])
        with pytest.raises(tidegate.MetadataChangedException):
            old.commit("WRITE")

    def test_what_has_come_since_conflicts(self, table):
        append(table, data_file("a", 5))
        txn = table.transaction(version=0)
        txn.read_whole_table()
        txn.add([data_file("b", 5)])
        with pytest.raises(tidegate.ConcurrentAppendException) as raised:
            txn.commit("WRITE")
        assert raised.value.conflict.version == 1

    def test_a_version_that_there_is_not(self, table):
        with pytest.raises(tidegate.VersionNotFound):
            table.transaction(version=7)

    def test_it_begins_at_one_version(self, table):
        with pytest.raises(ValueError, match="found both"):
            table.transaction(version=0, head=table.head())


class TestConflictCheck:
    def test_it_says_what_a_commit_would_come_to(self, table):
        txn = table.transaction()
        append(table, data_file("a", 6))
        txn.filter_files("month = 5")
        txn.add([data_file("b", 5)])
        check = txn.conflict_check()
        assert (check.version, check.rebased_over, check.committed) == (2, 1, False)
        assert not check.is_blind_append
        assert table.version == 1
        receipt = txn.commit("WRITE")
        assert receipt.version == check.version
        assert receipt.isolation_level is check.isolation_level

    def test_it_names_the_winner_and_the_transaction_goes_on(self, table):
        txn = table.transaction()
        txn.filter_files("month = 5")
        txn.add([data_file("b", 5)])
        append(table, data_file("a", 5))
        for _ in range(2):
            with pytest.raises(tidegate.ConcurrentAppendException) as raised:
                txn.conflict_check("WRITE")
            assert raised.value.conflict.version == 1
            assert txn.is_open

    def test_it_takes_an_isolation_level(self, table):
        txn = table.transaction()
        with pytest.raises(tidegate.InvalidRequest, match="stricter"):
            txn.conflict_check("WRITE", isolation_level="SnapshotIsolation")

    def test_it_is_explained(self, table):
        append(table, data_file("a", 5))
        txn = table.transaction()
        txn.remove(txn.filter_files("month = 5"))
        txn.add([data_file("b", 5, rows=3), data_file("c", 5, rows=4)])
        txn.set_transaction("stream", 8)
        text = txn.explain("MERGE")
        assert txn.id in text
        for line in (
            "reads: rows where month = 5",
            "reads: 1 files",
            "actions: adds 2 files, 7 rows, 200 bytes",
            "actions: removes 1 files",
            "actions: records version 8 of the application stream",
            "as MERGE: would land as version 2, past 0 commits, under",
        ):
            assert line in text
        append(table, data_file("d", 5))
        refused = txn.explain("MERGE")
        assert "would be refused (Concurrent" in refused
        assert "The winner is version 2" in refused
        assert txn.is_open

    def test_a_transaction_of_nothing_is_explained(self, table):
        text = table.transaction().explain()
        assert "reads: nothing" in text
        assert "actions: none" in text


def test_a_lake_knows_what_was_committed_through_it_last(lake, shared_server):
    table, other = new_table(lake), new_table(lake)
    assert lake.last_commit_version(table) is None
    append(table, data_file("a"))
    append(table.for_application("app-1"), data_file("b"))
    with tidegate.connect(shared_server) as elsewhere:
        append(elsewhere.table(table.id), data_file("c"))
        assert elsewhere.last_commit_version(table) == 3
    assert lake.last_commit_version(table) == 2
    assert lake.last_commit_version(other) is None
