"""What a commit did, in numbers, by the names of Delta's CommitStats."""

import json

import msgspec

from tests.client import answers
from tests.client.tables import append, data_file, new_table
from tidegate import IsolationLevel
from tidegate.commit_stats import CommitTally
from tidegate_protocol.log.codec import decode


def test_they_tell_of_the_commit_and_of_the_table(table):
    append(table, data_file("a", 5), data_file("b", 6))
    with table.transaction() as txn:
        txn.remove(txn.filter_files("month = 5"))
        txn.add([data_file("c", 5), data_file("d", 7), data_file("e", 7, data_change=False)])
        txn.set_transaction("app", 1)
        receipt = txn.commit("WRITE")
    stats = receipt.stats
    assert (stats.start_version, stats.commit_version, stats.read_version) == (1, 2, 2)
    assert (stats.num_add, stats.num_remove, stats.num_set_transaction) == (3, 1, 1)
    assert (stats.num_files_total, stats.size_in_bytes_total) == (4, 400)
    assert stats.bytes_new == 200, "what was only moved is not new"
    assert (stats.num_distinct_partitions_in_add, stats.num_partition_columns_in_table) == (2, 1)
    assert (stats.num_of_domain_metadatas, stats.num_absolute_paths_in_add) == (0, 0)
    assert (stats.num_cdc_files, stats.cdc_bytes_new) == (0, 0)
    assert (stats.isolation_level, stats.txn_id) == (IsolationLevel.SERIALIZABLE, txn.id)
    assert stats.txn_duration_ms >= stats.commit_duration_ms >= receipt.metrics.duration_ms - 1
    assert stats.conflict_check_duration_ms >= 0


def test_totals_are_of_the_table_and_not_of_what_was_read(table):
    txn = table.transaction()
    append(table, data_file("theirs"), data_file("theirs-2"))
    txn.add([data_file("mine")])
    stats = txn.commit("WRITE").stats
    assert (stats.start_version, stats.commit_version, stats.read_version) == (0, 2, 2)
    assert (stats.num_files_total, stats.size_in_bytes_total) == (3, 300)


def test_large_commits_have_them_too(lake):
    table = new_table(lake)
    with table.transaction() as txn:
        files = (data_file(f"f{number}", number % 3) for number in range(10))
        stats = txn.commit_large(files, "CLONE").stats
    assert (stats.num_add, stats.num_distinct_partitions_in_add) == (10, 3)
    assert stats.num_files_total == 10


def test_as_json_they_have_deltas_names(scripted_txn, loopback):
    totals = {"version": 7, "num_files": 3, "size_bytes": 30}
    loopback.answer(201, answers.receipt(scripted_txn.id, check_ms=2, totals=totals))
    found = json.loads(msgspec.json.encode(scripted_txn.commit("WRITE").stats))
    assert found["readVersion"] == 7
    assert found["conflictCheckDurationMs"] == 2
    assert {"numFilesTotal", "sizeInBytesTotal", "numDistinctPartitionsInAdd"} <= found.keys()
    assert {"txnDurationMs", "numOfDomainMetadatas", "numSetTransaction"} <= found.keys()


def test_what_an_older_service_does_not_tell_is_none(scripted_txn, loopback):
    loopback.answer(201, answers.receipt(scripted_txn.id))
    stats = scripted_txn.commit("WRITE").stats
    assert (stats.read_version, stats.num_files_total, stats.size_in_bytes_total) == (None,) * 3
    assert stats.conflict_check_duration_ms is None


def test_a_landing_that_is_looked_up_has_none(table):
    with table.transaction(transaction_id="nightly") as txn:
        txn.add([data_file("a")])
        txn.commit("WRITE")
    assert table.transaction_status("nightly").commit.stats is None


def test_change_data_domains_and_absolute_paths_are_counted_apart():
    domain = b'{"domainMetadata":{"domain":"d","configuration":"{}","removed":false}}'
    cdc = b'{"cdc":{"path":"_change_data/a","partitionValues":{},"size":7,"dataChange":false}}'
    absolute = data_file("a", path="file:/elsewhere/a.parquet")
    tally = CommitTally.of([decode(cdc), decode(domain), absolute])
    assert (tally.cdc_files, tally.cdc_bytes, tally.absolute_paths) == (1, 7, 1)
    assert (tally.actions, tally.adds, tally.domains, tally.bytes_new) == (3, 1, 1, 100)
