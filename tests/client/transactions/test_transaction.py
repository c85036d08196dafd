"""What a transaction records and proposes."""

import msgspec
import pytest

import tidegate
from tests.builders import flights
from tests.client import answers
from tidegate import DataFile, IsolationLevel, TransactionState
from tidegate.errors import InvalidProposal
from tidegate.version import ENGINE_INFO
from tidegate_protocol.log.codec import encode

TABLE = f"/api/v1/tables/{answers.TABLE_ID}"
TX = "tx-1"
NOW_MS = 1_750_000_000_000


@pytest.fixture
def txn(scripted_table, loopback):
    loopback.answer(200, answers.head())
    transaction = scripted_table.transaction(transaction_id=TX)
    loopback.seen.clear()
    return transaction


def data_file(path: str = "month=5/a.parquet") -> DataFile:
    return DataFile(
        path=path,
        partition_values={"month": "5"},
        size=10,
        modification_time=1,
        data_change=True,
    )


def proposed(txn, loopback, operation="WRITE", **arguments):
    """Commit, and return the body that was sent."""
    loopback.answer(201, answers.receipt(txn.id))
    txn.commit(operation, **arguments)
    seen = loopback.seen[-1]
    assert (seen.method, seen.path) == ("POST", f"{TABLE}/commits")
    return seen.json


def test_it_begins_at_the_head_it_reads(txn):
    assert txn.read_version == 4
    assert txn.head.metadata.partition_columns == ("month",)
    assert txn.state is TransactionState.OPEN
    assert "tx-1" in repr(txn)
    assert "read_version=4" in repr(txn)


def test_each_transaction_has_an_id_of_its_own(scripted_table, loopback):
    loopback.answer(200, answers.head())
    loopback.answer(200, answers.head())
    assert scripted_table.transaction().id != scripted_table.transaction().id


def test_an_append_reads_nothing(txn, loopback):
    txn.add([data_file()])
    body = proposed(txn, loopback)
    assert body["transaction_id"] == TX
    assert body["read_version"] == 4
    assert body["reads"] == {"whole_table": False, "predicates": [], "files": [], "app_ids": []}
    assert body["operation"] == "WRITE"
    assert body["engine_info"] == ENGINE_INFO
    assert [list(action) for action in body["actions"]] == [["add"]]


def test_a_filter_is_scanned_at_the_read_version_and_recorded(txn, loopback):
    files = [flights.add("month=5/a%20b.parquet"), flights.add("month=5/b.parquet")]
    loopback.answer(200, answers.scan(*files))
    found = txn.filter_files("month = 5")
    assert loopback.seen[0].json == {"predicates": ["month = 5"], "version": 4}
    assert [file.path for file in found] == ["month=5/a%20b.parquet", "month=5/b.parquet"]
    assert proposed(txn, loopback)["reads"] == {
        "whole_table": False,
        "predicates": ["month = 5"],
        "files": ["month=5/a%20b.parquet", "month=5/b.parquet"],
        "app_ids": [],
    }


def test_a_filter_that_finds_nothing_was_read_all_the_same(txn, loopback):
    loopback.answer(200, answers.scan())
    assert txn.filter_files("month = 13") == []
    assert proposed(txn, loopback)["reads"]["predicates"] == ["month = 13"]


def test_filters_add_up_and_each_counts_once(txn, loopback):
    for _ in range(2):
        loopback.answer(200, answers.scan(flights.add("b.parquet")))
        txn.filter_files("month = 6")
    loopback.answer(200, answers.scan(flights.add("a.parquet")))
    txn.filter_files("month = 5")
    reads = proposed(txn, loopback)["reads"]
    assert reads["predicates"] == ["month = 6", "month = 5"]
    assert reads["files"] == ["a.parquet", "b.parquet"]


def test_a_scan_without_a_filter_reads_the_whole_table(txn, loopback):
    loopback.answer(200, answers.scan(flights.add("a.parquet")))
    assert len(txn.filter_files()) == 1
    assert loopback.seen[0].json == {"version": 4}
    assert proposed(txn, loopback)["reads"]["whole_table"] is True


def test_reading_the_whole_table_another_way_is_recorded(txn, loopback):
    txn.read_whole_table()
    assert proposed(txn, loopback)["reads"]["whole_table"] is True


def test_a_filter_that_failed_was_not_read(txn, loopback):
    loopback.answer(422, answers.failure("invalid-predicate", 422))
    with pytest.raises(tidegate.InvalidRequest):
        txn.filter_files("nope = 1")
    assert txn.state is TransactionState.OPEN
    assert proposed(txn, loopback)["reads"]["predicates"] == []


def test_an_applications_version_is_recorded_as_read(txn, loopback):
    loopback.answer(200, {"app_id": "stream", "version": -1, "last_updated": None})
    assert txn.txn_version("stream") == -1
    txn.set_transaction("stream", 0)
    body = proposed(txn, loopback)
    assert body["reads"]["app_ids"] == ["stream"]
    assert body["actions"] == [
        {"txn": {"appId": "stream", "version": 0, "lastUpdated": NOW_MS}},
    ]


def test_a_removed_file_takes_everything_known_of_it_along(txn, loopback):
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "sizeInBytes": 4, "cardinality": 2}
    loopback.answer(
        200,
        answers.scan(
            flights.add(
                "a%20b.parquet", deletionVector=vector, baseRowId=7, defaultRowCommitVersion=3
            )
        ),
    )
    txn.remove(txn.filter_files("month = 5"))
    assert proposed(txn, loopback, "DELETE")["actions"] == [
        {
            "remove": {
                "path": "a%20b.parquet",
                "dataChange": True,
                "deletionTimestamp": NOW_MS,
                "extendedFileMetadata": True,
                "partitionValues": {"month": "5"},
                "size": 10,
                "stats": '{"numRecords":3}',
                "deletionVector": vector,
                "baseRowId": 7,
                "defaultRowCommitVersion": 3,
            }
        }
    ]


def test_a_rewrite_says_that_no_data_changes(txn, loopback):
    txn.remove([data_file()], data_change=False)
    (action,) = proposed(txn, loopback, "OPTIMIZE")["actions"]
    assert action["remove"]["dataChange"] is False


def test_a_file_that_is_added_again_keeps_its_bytes(txn, loopback):
    loopback.answer(200, answers.scan(flights.add("a.parquet", future={"x": 1.50})))
    (file,) = txn.filter_files("month = 5")
    txn.add([file])
    proposed(txn, loopback)
    assert file.raw in loopback.seen[-1].body


@pytest.mark.parametrize("files", [[{"path": "a"}], "a.parquet"])
def test_what_is_no_data_file_is_a_type_error(txn, files):
    for method in (txn.add, txn.remove):
        with pytest.raises(TypeError, match="DataFile"):
            method(files)


def test_any_action_can_be_proposed_as_its_log_line(txn, loopback):
    action = {"domainMetadata": {"domain": "ours", "configuration": "{}", "removed": False}}
    txn.action(action)
    assert proposed(txn, loopback)["actions"] == [action]


@pytest.mark.parametrize("action", [{}, {"add": {}}, {"add": {}, "remove": {}}, {"txn": 3}])
def test_an_action_of_the_wrong_shape_is_refused_at_once(txn, loopback, action):
    with pytest.raises(InvalidProposal) as raised:
        txn.action(action)
    assert raised.value.code == "invalid-action"
    assert txn.state is TransactionState.OPEN
    assert proposed(txn, loopback)["actions"] == []


class TestMetadata:
    def test_what_is_not_named_stays(self, txn, loopback):
        txn.update_metadata(
            set_properties={"team": "air"}, unset_properties=["owner", "absent"], comment="new"
        )
        (action,) = proposed(txn, loopback, "SET TBLPROPERTIES")["actions"]
        assert action == {
            "metaData": answers.METADATA
            | {
                "configuration": {"delta.appendOnly": "false", "team": "air"},
                "description": "new",
            }
        }

    def test_a_schema_is_taken_as_create_table_takes_it(self, txn, loopback):
        txn.update_metadata(schema={"type": "struct", "fields": []})
        (action,) = proposed(txn, loopback, "ADD COLUMNS")["actions"]
        assert action["metaData"]["schemaString"] == '{"type":"struct","fields":[]}'
        assert action["metaData"]["configuration"] == answers.METADATA["configuration"]

    def test_it_is_changed_once(self, txn, loopback):
        txn.update_metadata(set_properties={"a": "1"})
        for again in (
            lambda: txn.update_metadata(comment="new"),
            lambda: txn.action({"metaData": answers.METADATA}),
        ):
            with pytest.raises(InvalidProposal, match="more than once in a transaction") as raised:
                again()
            assert raised.value.code == "multiple-metadata"
        (action,) = proposed(txn, loopback)["actions"]
        assert action["metaData"]["configuration"]["a"] == "1"

    @pytest.mark.parametrize(
        "write",
        [
            lambda txn: txn.add([data_file()]),
            lambda txn: txn.action(msgspec.json.decode(encode(data_file()))),
        ],
        ids=["add", "action"],
    )
    def test_it_stays_after_files_were_added(self, txn, loopback, write):
        write(txn)
        with pytest.raises(InvalidProposal, match="has already written data") as raised:
            txn.update_metadata(schema={"type": "struct", "fields": []})
        assert raised.value.definite
        assert [list(action) for action in proposed(txn, loopback)["actions"]] == [["add"]]

    def test_files_are_added_after_it_and_removed_before(self, txn, loopback):
        txn.remove([data_file("month=5/old.parquet")])
        txn.update_metadata(comment="new")
        assert txn.metadata.description == "new"
        txn.add([data_file()])
        kinds = [list(action) for action in proposed(txn, loopback)["actions"]]
        assert kinds == [["remove"], ["metaData"], ["add"]]

    def test_no_change_is_no_action(self, txn, loopback):
        txn.update_metadata()
        assert proposed(txn, loopback)["actions"] == []


class TestCommit:
    def test_everything_said_about_it_is_in_the_body(self, txn, loopback):
        body = proposed(
            txn,
            loopback,
            "MERGE",
            parameters={"predicate": "[]"},
            metrics={"numOutputRows": "3"},
            user_metadata="nightly",
            tags={"writer": "a"},
            isolation_level=IsolationLevel.WRITE_SERIALIZABLE,
            engine_info="Mine/1",
        )
        assert body == {
            "transaction_id": TX,
            "read_version": 4,
            "reads": {"whole_table": False, "predicates": [], "files": [], "app_ids": []},
            "operation": "MERGE",
            "operation_parameters": {"predicate": "[]"},
            "operation_metrics": {"numOutputRows": "3"},
            "isolation_level": "WriteSerializable",
            "user_metadata": "nightly",
            "tags": {"writer": "a"},
            "engine_info": "Mine/1",
            "skip_if_empty": False,
            "actions": [],
        }

    def test_the_receipt_says_where_it_landed(self, txn, loopback):
        loopback.answer(201, answers.receipt(TX, version=9, rebased_over=4, published=False))
        receipt = txn.commit("WRITE")
        assert (receipt.version, receipt.rebased_over, receipt.published) == (9, 4, False)
        assert receipt.isolation_level is IsolationLevel.SERIALIZABLE
        assert receipt.metrics.num_added_files == 1
        assert txn.state is TransactionState.COMMITTED

    def test_an_isolation_level_may_be_given_by_its_name(self, txn, loopback):
        body = proposed(txn, loopback, isolation_level="SnapshotIsolation")
        assert body["isolation_level"] == "SnapshotIsolation"

    def test_an_isolation_level_that_there_is_not_leaves_it_open(self, txn, loopback):
        with pytest.raises(ValueError, match="Chaos"):
            txn.commit("WRITE", isolation_level="Chaos")
        assert txn.state is TransactionState.OPEN
        proposed(txn, loopback)

    def test_what_json_cannot_say_leaves_it_open(self, txn, loopback):
        with pytest.raises(TypeError):
            txn.commit("WRITE", parameters={"at": object()})
        assert txn.state is TransactionState.OPEN
        proposed(txn, loopback)
