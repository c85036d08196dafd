"""ALTER TABLE: features of the protocol, added and dropped."""

import json

import pytest

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import independent, rows
from tidegate.spark import InvalidCommand
from tidegate.spark.tables import DeltaTable
from tidegate_protocol.features.table_features import implied_features


def features(table) -> frozenset[str]:
    return implied_features(table.head().protocol)


def refused(error_class: str):
    return pytest.raises(InvalidCommand, match=rf"\[{error_class}\]")


@pytest.fixture
def numbers(spark, create, copied):
    def make():
        table = create("id bigint")
        table.append(spark.range(3))
        return table

    return copied(make)


class TestAdding:
    def test_is_one_commit_and_once(self, spark, numbers):
        table = DeltaTable.over(spark, numbers)
        table.addFeatureSupport("V2CHECKPOINT")
        table.addFeatureSupport("v2Checkpoint")
        assert "v2Checkpoint" in features(numbers)
        assert numbers.version == 2
        commit = numbers.history(limit=1)[0]
        assert commit.operation == "UPGRADE PROTOCOL"
        shown = json.loads(commit.operation_parameters["newProtocol"])
        assert (shown["minReaderVersion"], shown["readerFeatures"]) == (3, ["v2Checkpoint"])

    def test_by_versions(self, spark, numbers):
        table = DeltaTable.over(spark, numbers)
        table.upgradeTableProtocol(1, 3)
        assert "checkConstraints" in features(numbers)
        table.upgradeTableProtocol(1, 3)
        assert numbers.version == 2
        with refused("DELTA_INVALID_PROTOCOL_DOWNGRADE"):
            table.upgradeTableProtocol(1, 2)
        for versions in ((4, 7), (3, 8)):
            with refused("DELTA_INVALID_PROTOCOL_VERSION"):
                table.upgradeTableProtocol(*versions)
        assert numbers.version == 2

    def test_of_what_nobody_knows_is_refused(self, spark, numbers):
        table = DeltaTable.over(spark, numbers)
        with refused("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"):
            table.addFeatureSupport("nothing")
        with refused("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"):
            table.addFeatureSupport("geospatial")
        with pytest.raises(ValueError, match="featureName needs to be a string"):
            table.addFeatureSupport(1)
        with pytest.raises(ValueError, match="readerVersion needs to be an int"):
            table.upgradeTableProtocol("1", 2)
        assert numbers.version == 1


class TestDropping:
    def test_takes_what_needs_it_and_keeps_the_history_safe(self, spark, create):
        table = create("id bigint", **VECTORS)
        table.append(spark.range(10).coalesce(1))
        DeltaTable.over(spark, table).dropFeatureSupport("deletionVectors")
        assert "deletionVectors" not in features(table)
        assert "checkpointProtection" in features(table)
        assert table.head().properties == {
            "delta.requireCheckpointProtectionBeforeVersion": str(table.version)
        }
        commit = table.history(limit=1)[0]
        assert commit.operation == "DROP FEATURE"
        assert commit.operation_parameters == {
            "featureName": "deletionVectors",
            "truncateHistory": False,
        }
        assert len(rows(table.read(spark))) == len(independent(table)) == 10

    def test_of_writers_features_asks_for_no_more(self, spark, numbers):
        alter = numbers.alter(spark=spark)
        alter.add_constraint("small", "id < 10")
        with refused("DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"):
            alter.drop_feature("checkConstraints")
        alter.drop_constraint("small")
        alter.drop_feature("checkConstraints")
        assert features(numbers) == {"appendOnly", "invariants"}

    @pytest.mark.parametrize(
        ("name", "truncate", "error_class"),
        [
            ("nothing", False, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
            ("v2Checkpoint", False, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
            ("appendOnly", False, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
            ("deletionVectors", True, "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"),
        ],
    )
    def test_refusals(self, spark, create, name, truncate, error_class):
        table = create("id bigint", **VECTORS)
        with refused(error_class):
            table.alter(spark=spark).drop_feature(name, truncate_history=truncate)
        assert table.version == 0
