"""The metadata rule: what of a winner's metadata is tolerated."""

from dataclasses import replace

import pytest

from tests.builders.actions import add, decoded, features, metadata, protocol
from tests.builders.ledgers import prepared, winner
from tests.builders.lines import column
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.metadata import changed_fields, metadata_rule
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction

EVERY_FEATURE = protocol(
    3,
    7,
    readers=["deletionVectors", "v2Checkpoint", "columnMapping", "catalogManaged"],
    writers=[
        "deletionVectors",
        "v2Checkpoint",
        "columnMapping",
        "catalogManaged",
        "rowTracking",
        "domainMetadata",
        "inCommitTimestamp",
    ],
)
ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}
CATALOG_ID = "io.unitycatalog.tableId"


def judged(before, after, *, with_protocol=EVERY_FEATURE):
    """The rule's answer to a transaction that holds nothing of the table's definition."""
    # Set here and not prepared: most of these features are not supported by `prepare`.
    mine = replace(prepared(add()), metadata=before, protocol=with_protocol)
    outcome = metadata_rule(mine, winner(after, operation="SET TBLPROPERTIES"))
    if isinstance(outcome, Conflict):
        assert outcome.code is Code.METADATA_CHANGED
        assert outcome.detail.startswith("version 1 (SET TBLPROPERTIES) changed")
        return outcome
    assert outcome.metadata is after
    return outcome


def tolerated(before, after, **options):
    return isinstance(judged(before, after, **options), PreparedTransaction)


def set_to(**properties):
    return metadata(properties=properties)


def test_a_winner_without_metadata_changes_nothing():
    mine = prepared(add())
    assert metadata_rule(mine, winner(add("b"))) is mine


def test_metadata_that_changes_nothing_is_tolerated():
    assert tolerated(metadata(), metadata())


def test_two_metadata_changes_conflict_even_if_they_agree():
    mine = prepared(metadata(), operation="SET TBLPROPERTIES")
    outcome = metadata_rule(mine, winner(metadata()))
    assert isinstance(outcome, Conflict)
    assert outcome.code is Code.METADATA_CHANGED


@pytest.mark.parametrize(
    ("field", "after"),
    [
        ("id", metadata(id="another")),
        ("name", metadata(name="n")),
        ("description", metadata(description="d")),
        ("format", metadata(format={"provider": "parquet", "options": {"a": "b"}})),
        ("partitionColumns", metadata(["x", "v"], ["x"])),
        ("createdTime", metadata(createdTime=5)),
        ("sorcery", metadata(sorcery=1)),
    ],
)
def test_any_other_field_conflicts(field, after):
    before = metadata(["x", "v"]) if field == "partitionColumns" else metadata()
    assert changed_fields(before, after) == {field}
    assert field in judged(before, after).detail


def test_absent_fields_equal_their_defaults():
    spelled_out = metadata(name=None, description=None)
    assert changed_fields(metadata(), spelled_out) == frozenset()


def test_unknown_fields_are_compared_by_value():
    one = decoded({"metaData": {**_body(), "sorcery": {"a": 1, "b": 2}}})
    other = decoded({"metaData": {**_body(), "sorcery": {"b": 2, "a": 1}}})
    assert changed_fields(one, other) == frozenset()
    assert changed_fields(one, decoded({"metaData": {**_body(), "sorcery": {"a": 1}}})) == {
        "sorcery"
    }


def _body():
    return {"id": "i", "schemaString": "{}", "partitionColumns": [], "configuration": {}}


class TestProperties:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({}, {"delta.logRetentionDuration": "interval 7 days"}),
            ({"owner": "a"}, {"owner": "b"}),
            ({"owner": "a"}, {}),
            ({"delta.enableDeletionVectors": "true"}, {}),
            ({"delta.enableInCommitTimestamps": "true"}, {}),
        ],
    )
    def test_whatever_is_not_on_the_list_conflicts(self, before, after):
        conflict = judged(set_to(**before), set_to(**after))
        assert isinstance(conflict, Conflict)
        assert str(sorted({**before, **after})) in conflict.detail

    @pytest.mark.parametrize(
        ("name", "value", "feature"),
        [
            ("delta.enableDeletionVectors", "true", "deletionVectors"),
            ("delta.enableDeletionVectors", "TRUE", "deletionVectors"),
            ("delta.checkpointPolicy", "v2", "v2Checkpoint"),
            ("delta.enableInCommitTimestamps", "true", "inCommitTimestamp"),
            ("delta.enableRowTracking", "true", "rowTracking"),
            ("delta.columnMapping.mode", "name", "columnMapping"),
        ],
    )
    def test_enabling_a_feature_that_the_protocol_supports_is_tolerated(self, name, value, feature):
        assert tolerated(metadata(), set_to(**{name: value}))
        assert not tolerated(metadata(), set_to(**{name: value}), with_protocol=features())
        lacking = [f for f in EVERY_FEATURE.writer_features if f != feature]
        assert not tolerated(
            metadata(), set_to(**{name: value}), with_protocol=protocol(3, 7, writers=lacking)
        )

    @pytest.mark.parametrize(
        ("name", "before", "after"),
        [
            ("delta.enableDeletionVectors", "true", "false"),
            ("delta.enableInCommitTimestamps", "true", "false"),
            ("delta.enableRowTracking", "true", "false"),
            ("delta.checkpointPolicy", "v2", "classic"),
            ("delta.columnMapping.mode", "name", "none"),
            ("delta.columnMapping.mode", "name", "id"),
            ("delta.columnMapping.mode", "none", "id"),
        ],
    )
    def test_any_other_direction_conflicts(self, name, before, after):
        assert not tolerated(set_to(**{name: before}), set_to(**{name: after}))

    def test_from_off_to_on_is_enabling(self):
        off = set_to(**{"delta.enableDeletionVectors": "false"})
        assert tolerated(off, set_to(**{"delta.enableDeletionVectors": "true"}))

    @pytest.mark.parametrize(
        "name",
        [
            "delta.inCommitTimestampEnablementVersion",
            "delta.inCommitTimestampEnablementTimestamp",
            CATALOG_ID,
        ],
    )
    def test_what_is_set_once_may_be_new_but_not_other(self, name):
        assert tolerated(metadata(), set_to(**{name: "7"}))
        assert not tolerated(set_to(**{name: "7"}), set_to(**{name: "8"}))

    def test_the_catalogs_id_means_nothing_where_there_is_no_catalog(self):
        before, after = set_to(**{CATALOG_ID: "7"}), set_to(**{CATALOG_ID: "8"})
        assert tolerated(before, after, with_protocol=features())

    def test_the_greatest_column_id_may_move(self):
        name = "delta.columnMapping.maxColumnId"
        assert tolerated(set_to(**{name: "1"}), set_to(**{name: "2"}))

    def test_what_stays_as_it_was_is_no_change(self):
        kept = {"owner": "a", "delta.logRetentionDuration": "interval 7 days"}
        assert tolerated(set_to(**kept), set_to(**kept, **{"delta.enableDeletionVectors": "true"}))

        assert not tolerated(set_to(**kept), set_to(**kept, later="b"))

    def test_one_that_is_not_tolerated_is_enough(self):
        after = set_to(**{"delta.enableDeletionVectors": "true", "owner": "b"})
        conflict = judged(metadata(), after)
        assert isinstance(conflict, Conflict)
        assert "['owner']" in conflict.detail

    def test_row_tracking_that_a_winner_enabled_is_not_preserved(self):
        outcome = judged(metadata(), metadata(properties=ROW_TRACKING))
        assert outcome.tags == {"delta.rowTracking.preserved": "false"}
        again = judged(metadata(properties=ROW_TRACKING), metadata(properties=ROW_TRACKING))
        assert again.tags == {}

    def test_row_tracking_columns_come_with_row_tracking(self):
        columns = {name: value for name, value in ROW_TRACKING.items() if "materialized" in name}
        for name, value in columns.items():
            assert not tolerated(metadata(), set_to(**{name: value}))


MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "v"}
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}


class TestSchema:
    def mapped(self, *columns, **properties):
        return metadata(columns, properties={**BY_NAME, **properties})

    def test_column_mapping_by_name_over_the_same_columns(self):
        assert tolerated(metadata(), self.mapped(column("v", **MAPPED)))

    def test_it_may_change_what_other_mapping_keys_say(self):
        before = metadata([column("v", comment="c", **{"parquet.field.id": 1})])
        after = self.mapped(column("v", comment="c", **MAPPED, **{"parquet.field.id": 2}))
        assert tolerated(before, after)

    @pytest.mark.parametrize(
        "columns",
        [
            [column("v", **MAPPED), column("w", **MAPPED)],
            [column("w", **MAPPED)],
            [column("v", "long", **MAPPED)],
            [column("v", nullable=False, **MAPPED)],
            [column("v", comment="new", **MAPPED)],
        ],
    )
    def test_nothing_else_may_change_with_it(self, columns):
        assert not tolerated(metadata(), self.mapped(*columns))

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (column("v"), column("v", comment="new")),
            (column("v"), column("v", "long")),
            (column("v", nullable=False), column("v")),
            (column("v"), column("v", **MAPPED)),
        ],
    )
    def test_without_it_no_schema_change_is_tolerated(self, before, after):
        assert not tolerated(metadata([before]), metadata([after]))

    def test_where_the_table_is_mapped_already_no_schema_change_is_tolerated(self):
        before = self.mapped(column("v", **MAPPED))
        after = self.mapped(column("v", **{**MAPPED, "delta.columnMapping.id": 2}))
        assert not tolerated(before, after)

    def test_truth_and_one_are_two_values(self):
        before = metadata([column("v", flag=1)])
        assert not tolerated(before, self.mapped(column("v", flag=True, **MAPPED)))

    @pytest.mark.parametrize("text", ["{", '{"type":"struct"}'])
    def test_a_schema_that_cannot_be_read_is_not_tolerated(self, text):
        assert not tolerated(metadata(), metadata(schemaString=text, properties=BY_NAME))
        assert not tolerated(metadata(schemaString=text), self.mapped(column("v", **MAPPED)))
