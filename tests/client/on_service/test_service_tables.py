"""Tables and reading, against the real service, for both kinds of table."""

from datetime import UTC, datetime

import pytest

import tidegate
from tests.client import answers, tables
from tests.client.tables import append, data_file, new_table, paths
from tidegate import DataFile, IsolationLevel
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.schema.table_schema import parse_schema


class TestTables:
    def test_a_new_table_is_what_was_asked_for(self, lake):
        table = new_table(lake, properties={"delta.appendOnly": "true"}, comment="for tests")
        head = table.head()
        assert (head.id, head.name, head.location) == (table.id, table.name, table.location)
        assert (head.version, head.published_version, head.num_files) == (0, 0, 0)
        assert head.schema == parse_schema(answers.SCHEMA_TEXT)
        assert head.partition_columns == ("month",)
        assert head.properties["delta.appendOnly"] == "true"
        assert head.metadata.description == "for tests"
        assert (head.catalog_managed, head.state, head.state_reason) == (False, "active", None)

    def test_properties_without_effect_are_told(self, lake):
        with pytest.warns(UserWarning, match="delta.sampleRetentionDuration has no effect") as told:
            new_table(
                lake, properties={"delta.sampleRetentionDuration": "interval 7 days", "mine": "1"}
            )
        assert [warning.filename for warning in told] == [tables.__file__]

    def test_a_table_is_found_by_name_in_any_case_and_by_id(self, lake, table):
        assert lake.table(table.name.upper()).id == table.id
        assert lake.table(table.id).name == table.name

    def test_a_table_is_listed(self, lake, table):
        assert [found.id for found in lake.tables(table.name)] == [table.id]
        assert list(lake.tables("client.nobody.")) == []

    def test_a_forgotten_table_is_gone_for_its_handles_too(self, lake):
        old = new_table(lake)
        lake.forget_table(old.name)
        with pytest.raises(tidegate.TableNotFound):
            lake.table(old.name)
        with pytest.raises(tidegate.TableNotFound):
            old.head()
        with pytest.raises(tidegate.TableNotFound):
            lake.forget_table(old.name)


class TestReading:
    def test_an_append_is_found_by_scan_history_and_bytes(self, table):
        with table.transaction() as txn:
            txn.add([data_file("a", 5), data_file("b", 6)])
            receipt = txn.commit(
                "WRITE",
                parameters={"mode": "Append"},
                metrics={"numFiles": "2"},
                user_metadata="first",
                tags={"writer": "w1"},
            )
        assert (receipt.version, receipt.table) == (1, table.name)
        assert (receipt.read_version, receipt.transaction_id) == (0, txn.id)
        assert receipt.isolation_level is IsolationLevel.SERIALIZABLE
        assert receipt.is_blind_append
        assert not receipt.replayed
        assert (receipt.metrics.num_added_files, receipt.metrics.bytes_added) == (2, 200)

        newest, created = table.history()
        assert (newest.version, created.version) == (1, 0)
        assert (newest.operation, newest.transaction_id) == ("WRITE", txn.id)
        assert newest.operation_parameters == {"mode": "Append"}
        assert newest.operation_metrics == {"numFiles": "2"}
        assert (newest.user_metadata, newest.tags) == ("first", {"writer": "w1"})
        assert newest.engine_info == tidegate.version.ENGINE_INFO
        assert newest.timestamp == receipt.timestamp
        assert not newest.foreign

        assert paths(table.scan()) == ["month=5/a.parquet", "month=6/b.parquet"]
        assert paths(table.scan("month = 6")) == ["month=6/b.parquet"]
        actions = list(decode_lines(table.commit_bytes(1)))
        assert [action.path for action in actions if isinstance(action, DataFile)] == [
            "month=5/a.parquet",
            "month=6/b.parquet",
        ]

    def test_an_earlier_version_is_found_by_number_and_by_time(self, table):
        first = append(table, data_file("a"))
        append(table, data_file("b"))
        assert paths(table.scan(version=1)) == ["month=5/a.parquet"]
        then = datetime.fromtimestamp(first.timestamp / 1000, UTC)
        assert table.scan(timestamp=first.timestamp).version == 1
        assert table.scan(timestamp=then).version == 1
        assert table.scan().version == 2
