"""Log lines made here: from fields, from bodies, and by changing others."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import (
    Add,
    CommitInfo,
    DeletionVector,
    Format,
    Metadata,
    Protocol,
    Txn,
)
from tidegate_protocol.log.codec import InvalidActionError

TXN = Txn(app_id="a", version=1)


class TestEncode:
    def test_absent_fields_stay_absent(self):
        assert codec.encode(TXN) == b'{"txn":{"appId":"a","version":1}}'

    def test_nulls_inside_a_field_stay(self):
        add = Add(
            path="x",
            partition_values={"p": None},
            size=1,
            modification_time=2,
            data_change=True,
            deletion_vector=DeletionVector(
                storage_type="i", path_or_inline_dv="x", size_in_bytes=1, cardinality=1
            ),
        )
        decoded = codec.decode(codec.encode(add))
        assert isinstance(decoded, Add)
        assert decoded.partition_values == {"p": None}
        assert decoded.deletion_vector == add.deletion_vector

    def test_required_fields_of_a_metadata_are_there_when_empty(self):
        metadata = Metadata(id="i", schema_string="{}", partition_columns=(), configuration={})
        assert json.loads(codec.encode(metadata)) == {
            "metaData": {
                "id": "i",
                "schemaString": "{}",
                "partitionColumns": [],
                "configuration": {},
                "format": {"provider": "parquet", "options": {}},
            }
        }
        assert metadata.format == Format()

    @given(st.permutations(["a", "b", "c", "d", "e"]))
    def test_equal_actions_have_equal_bytes(self, features):
        protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset(features),
            writer_features=frozenset(features),
        )
        assert json.loads(codec.encode(protocol))["protocol"]["writerFeatures"] == sorted(features)


class TestFromBody:
    def test_a_body_makes_an_action_with_bytes(self):
        made = codec.from_body(Txn, {"appId": "a", "version": 1, "new": [1]})
        assert made.app_id == "a"
        assert made.raw == b'{"txn":{"appId":"a","version":1,"new":[1]}}'

    def test_a_body_of_another_shape_is_refused(self):
        with pytest.raises(InvalidActionError, match="version"):
            codec.from_body(Txn, {"appId": "a"})

    @pytest.mark.parametrize(
        "body",
        [
            {"timestamp": 1, "tags": {"a": "b"}, "operationParameters": {"mode": "x"}, "new": {}},
            {"timestamp": "soon", "operation": "WRITE"},
            {"timestamp": 2**63, "operation": 1},
        ],
    )
    def test_it_is_as_if_it_had_come_as_a_line(self, body):
        made = codec.from_body(CommitInfo, body)
        assert made == codec.decode(made.raw)

    def test_what_no_line_may_hold_is_refused(self):
        deep: object = "x"
        for _ in range(70):
            deep = [deep]
        for value, why in (("\0", "NUL"), (deep, "nested deeper")):
            with pytest.raises(InvalidActionError, match=why):
                codec.from_body(CommitInfo, {"operationParameters": {"a": value}})


class TestWithFields:
    RAW = b'{"txn":{"new" : 1.50,"appId":"a","version":1,"lastUpdated":5}}'

    def test_only_the_named_fields_change(self):
        changed = codec.with_fields(codec.decode(self.RAW), {"version": 2, "lastUpdated": None})
        assert changed.raw == b'{"txn":{"new":1.50,"appId":"a","version":2}}'
        assert isinstance(changed, Txn)
        assert (changed.version, changed.last_updated) == (2, None)

    def test_the_action_itself_stays(self):
        action = codec.decode(self.RAW)
        codec.with_fields(action, {"version": 2})
        assert action.raw == self.RAW

    def test_an_action_made_in_code_gets_bytes(self):
        assert codec.with_fields(TXN, {"lastUpdated": 7}).raw == (
            b'{"txn":{"appId":"a","version":1,"lastUpdated":7}}'
        )

    def test_a_change_to_another_shape_is_refused(self):
        with pytest.raises(InvalidActionError, match="version"):
            codec.with_fields(TXN, {"version": "new"})
