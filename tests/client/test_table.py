"""What a table's handle asks of the service, and what it makes of the answers."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.builders import flights
from tests.client import answers
from tests.client.transport.loopback import CutOff, OfService
from tidegate import DataFile
from tidegate.errors import (
    InvalidRequest,
    TransactionCommitted,
    TransactionNotFound,
    UnexpectedAnswer,
)
from tidegate_protocol.schema.table_schema import parse_schema

TABLE = f"/api/v1/tables/{answers.TABLE_ID}"


class TestHead:
    def test_a_head_is_asked_for_by_id(self, scripted_table, loopback):
        """A table that was forgotten and made anew under the same name is another one."""
        loopback.answer(200, answers.head(version=9))
        head = scripted_table.head()
        assert loopback.seen[0].path == TABLE
        assert (head.version, head.num_files, head.size_bytes) == (9, 2, 20)
        assert head.protocol.min_writer_version == 2
        assert head.properties["owner"] == "ops"
        assert head.schema == parse_schema(answers.SCHEMA_TEXT)

    def test_a_quarantined_table_says_why(self, scripted_table, loopback):
        loopback.answer(200, answers.head(state="quarantined", state_reason="bytes differ"))
        head = scripted_table.head()
        assert (head.state, head.state_reason) == ("quarantined", "bytes differ")

    def test_properties_are_asked_for_each_time(self, scripted_table, loopback):
        loopback.answer(200, answers.head(version=4))
        loopback.answer(200, answers.head(version=5))
        assert scripted_table.version == 4
        assert scripted_table.version == 5

    def test_schema_and_partition_columns_are_the_heads(self, scripted_table, loopback):
        loopback.answer(200, answers.head())
        loopback.answer(200, answers.head())
        assert scripted_table.schema.field("flight") is not None
        assert scripted_table.partition_columns == ("month",)


class TestHistory:
    def test_one_page_is_enough_where_the_service_says_so(self, scripted_table, loopback):
        loopback.answer(200, answers.history(2, 1, 0))
        commits = scripted_table.history()
        assert [commit.version for commit in commits] == [2, 1, 0]
        assert commits[0].operation_parameters == {"mode": "Append"}
        assert loopback.seen[0].path == f"{TABLE}/commits?limit=100"

    def test_pages_follow_each_other(self, scripted_table, loopback):
        loopback.answer(200, answers.history(4, 3, next_to_version=2))
        loopback.answer(200, answers.history(2, 1))
        commits = scripted_table.history(from_version=1, to_version=4)
        assert [commit.version for commit in commits] == [4, 3, 2, 1]
        assert [seen.path for seen in loopback.seen] == [
            f"{TABLE}/commits?limit=100&from_version=1&to_version=4",
            f"{TABLE}/commits?limit=100&from_version=1&to_version=2",
        ]

    def test_no_more_is_asked_for_than_wanted(self, scripted_table, loopback):
        loopback.answer(200, answers.history(4, 3, next_to_version=2))
        loopback.answer(200, answers.history(2, next_to_version=1))
        assert len(scripted_table.history(limit=3)) == 3
        assert [seen.path for seen in loopback.seen] == [
            f"{TABLE}/commits?limit=3",
            f"{TABLE}/commits?limit=1&to_version=2",
        ]

    def test_a_limit_of_none_at_all_asks_nothing(self, scripted_table, loopback):
        assert scripted_table.history(limit=0) == []
        assert loopback.seen == []


class TestBytes:
    def test_a_versions_bytes_come_as_they_are(self, scripted_table, loopback):
        content = b'{"commitInfo":{"a" : 1.0}}\n'
        loopback.then(OfService(200, content, {"Content-Type": "application/x-ndjson"}))
        assert scripted_table.commit_bytes(3) == content
        assert loopback.seen[0].path == f"{TABLE}/commits/3"

    @pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/html"}])
    def test_another_media_type_is_not_the_services(self, scripted_table, loopback, headers):
        loopback.then(OfService(200, b"<html>", headers))
        with pytest.raises(UnexpectedAnswer):
            scripted_table.commit_bytes(3)


class TestScan:
    def test_a_scan_without_anything_asks_for_the_latest_version(self, scripted_table, loopback):
        loopback.answer(200, answers.scan(flights.add("a.parquet"), version=6))
        scan = scripted_table.scan()
        assert (loopback.seen[0].path, loopback.seen[0].json) == (f"{TABLE}/scan", {})
        assert (scan.version, scan.timestamp) == (6, 1700000000123)
        assert scan.metadata.partition_columns == ("month",)
        assert scan.schema == parse_schema(answers.SCHEMA_TEXT)

    def test_a_file_has_the_logs_fields_and_keeps_the_ones_nobody_knows(
        self, scripted_table, loopback
    ):
        loopback.answer(200, answers.scan(flights.add("a%20b.parquet", None, future={"x": [1]})))
        (file,) = scripted_table.scan().files
        assert isinstance(file, DataFile)
        assert (file.path, file.partition_values, file.size) == (
            "a%20b.parquet",
            {"month": None},
            10,
        )
        assert b'"future": {"x": [1]}' in file.raw

    def test_a_scan_says_what_it_wants(self, scripted_table, loopback):
        loopback.answer(200, answers.scan())
        scripted_table.scan("month = 5", version=3)
        assert loopback.seen[0].json == {"predicates": ["month = 5"], "version": 3}

    @pytest.mark.parametrize(
        ("timestamp", "milliseconds"),
        [
            (1700000000123, 1700000000123),
            (datetime(2023, 11, 14, 22, 13, 20, 123999, UTC), 1700000000123),
            (datetime(2023, 11, 15, 0, 13, 20, tzinfo=timezone(timedelta(hours=2))), 1700000000000),
        ],
    )
    def test_a_timestamp_is_sent_in_milliseconds_rounded_down(
        self, scripted_table, loopback, timestamp, milliseconds
    ):
        loopback.answer(200, answers.scan())
        scripted_table.scan(timestamp=timestamp)
        assert loopback.seen[0].json == {"timestamp": milliseconds}

    def test_a_timestamp_without_a_time_zone_is_refused(self, scripted_table, loopback):
        with pytest.raises(ValueError, match="time zone"):
            scripted_table.scan(timestamp=datetime(2025, 1, 1))
        assert loopback.seen == []

    def test_an_answer_that_breaks_off_is_asked_for_again(self, scripted_table, loopback):
        loopback.then(CutOff(b'{"version":4,"files":['))
        loopback.answer(200, answers.scan())
        assert scripted_table.scan().files == ()

    @pytest.mark.parametrize(
        "file", [{"remove": {"path": "a", "dataChange": True}}, {"add": {"path": 3}}, {}]
    )
    def test_a_file_that_is_none_is_unexpected(self, scripted_table, loopback, file):
        loopback.answer(200, answers.scan(file))
        with pytest.raises(UnexpectedAnswer):
            scripted_table.scan()

    def test_a_bad_predicate_is_the_callers_to_correct(self, scripted_table, loopback):
        loopback.answer(422, answers.failure("invalid-predicate", 422))
        with pytest.raises(InvalidRequest) as raised:
            scripted_table.scan("nope = 1")
        assert raised.value.code == "invalid-predicate"


class TestTransactionIds:
    def test_an_applications_version(self, scripted_table, loopback):
        loopback.answer(200, {"app_id": "s/1", "version": 7, "last_updated": None})
        assert scripted_table.txn_version("s/1") == 7
        assert loopback.seen[0].path == f"{TABLE}/app-transactions/s%2F1"

    @pytest.mark.parametrize("configuration", ['{"n":1}', None])
    def test_a_domains_configuration(self, scripted_table, loopback, configuration):
        loopback.answer(200, {"domain": "my/own", "configuration": configuration})
        assert scripted_table.domain("my/own") == configuration
        assert loopback.seen[0].path == f"{TABLE}/domains/my%2Fown"

    def test_what_became_of_a_transaction(self, scripted_table, loopback):
        told = {"transaction_id": "tx", "state": "committed", "version": 7}
        loopback.answer(200, told | {"commit": answers.receipt("tx", 7)})
        status = scripted_table.transaction_status("tx")
        assert (status.state, status.version) == ("committed", 7)
        assert status.commit.version == 7
        assert loopback.seen[0].path == f"{TABLE}/transactions/tx"

    def test_what_landed_without_its_receipt_is_unexpected(self, scripted_table, loopback):
        loopback.answer(200, {"transaction_id": "tx", "state": "committed", "version": 7})
        with pytest.raises(UnexpectedAnswer, match="expected the receipt"):
            scripted_table.transaction_status("tx")

    def test_a_transaction_nobody_knows(self, scripted_table, loopback):
        loopback.answer(404, answers.failure("transaction-not-found", 404))
        with pytest.raises(TransactionNotFound):
            scripted_table.transaction_status("tx")

    def test_an_abort(self, scripted_table, loopback):
        loopback.answer(200, answers.aborted("tx"))
        scripted_table.abort_transaction("tx")
        (seen,) = loopback.seen
        assert (seen.method, seen.path) == ("POST", f"{TABLE}/transactions/tx/abort")

    def test_an_abort_that_comes_too_late_says_the_version(self, scripted_table, loopback):
        loopback.answer(409, answers.failure("transaction-committed", 409, version=7))
        with pytest.raises(TransactionCommitted) as raised:
            scripted_table.abort_transaction("tx")
        assert raised.value.version == 7

    @pytest.mark.parametrize("body", [{"state": "pending"}, {}, []])
    def test_a_success_that_is_no_abort_proves_nothing(self, scripted_table, loopback, body):
        loopback.answer(200, body)
        with pytest.raises(UnexpectedAnswer):
            scripted_table.abort_transaction("tx")
