"""Preparing: file actions."""

import json

import pytest

from tests.builders.actions import add, cdc, features, metadata, remove
from tests.builders.ledgers import prepared, state
from tests.builders.lines import column, vector, wide
from tests.protocol.prepare.test_prepare import refused
from tidegate_protocol.base.problems import Code

BY_X = state(metadata(["x", "v"], ["x"]))
VECTORS = state(
    metadata(properties={"delta.enableDeletionVectors": "true"}),
    features(readers=["deletionVectors"]),
)


class TestPaths:
    @pytest.mark.parametrize(
        "path", ["", "a/../b", "/a/../b", "_delta_log/x", "a//b", "a%2F%2E%2E/b", "a\nb"]
    )
    @pytest.mark.parametrize("make", [add, remove, cdc])
    def test_a_path_that_leads_elsewhere_is_refused(self, make, path):
        invalid = refused(add("fine"), make(path))
        assert (invalid.code, invalid.action_index) == (Code.INVALID_PATH, 1)
        assert invalid.path == path

    @pytest.mark.parametrize("path", ["/abs", "s3://b/k"])
    def test_absolute_ones_are_files_of_a_clone_and_no_change_data(self, path):
        """Where they may lie, the service knows."""
        prepared(add(path), remove("a"))
        prepared(add("a"), remove(path))
        assert refused(cdc(path)).code is Code.INVALID_PATH


class TestNumbers:
    @pytest.mark.parametrize(
        "action",
        [
            add(size=0),
            add(size=-1),
            add(modificationTime=-1),
            remove(size=-1),
            remove(deletionTimestamp=-1),
        ],
    )
    def test_sizes_and_times_that_cannot_be(self, action):
        invalid = refused(action)
        assert invalid.code is Code.INVALID_ACTION
        assert invalid.path == "a"

    def test_the_epoch_is_a_time(self):
        prepared(add(modificationTime=0), remove("b", deletionTimestamp=0, size=0))


class TestPartitionValues:
    @pytest.mark.parametrize("values", [{}, {"x": "1", "v": "1"}, {"v": "1"}, {"X": "1"}])
    def test_the_keys_are_the_partition_columns(self, values):
        invalid = refused(add("a", values), at=BY_X)
        assert invalid.code is Code.PARTITION_MISMATCH
        assert "expected exactly ['x']" in invalid.detail

    def test_of_very_many_the_answer_names_a_few(self):
        invalid = refused(add("a", {str(number): "1" for number in range(5000)}), at=BY_X)
        assert invalid.detail.startswith("'a' has partition values of ['0', '1', '10', ")
        assert "and 4980 more" in invalid.detail
        assert len(invalid.detail) < 300

    def test_an_unpartitioned_table_has_none(self):
        assert refused(add("a", {"v": "1"})).code is Code.PARTITION_MISMATCH

    @pytest.mark.parametrize("text", ["one", "1.5", "99999999999", "true"])
    def test_the_text_is_a_value_of_the_columns_type(self, text):
        invalid = refused(add("b", {"x": "1"}), add("a", {"x": text}), at=BY_X)
        assert (invalid.code, invalid.action_index) == (Code.PARTITION_MISMATCH, 1)
        assert "partition column 'x'" in invalid.detail

    @pytest.mark.parametrize("text", ["1", "-5", None, ""])
    def test_null_is_a_value_of_every_type(self, text):
        prepared(add("a", {"x": text}), add("b", {"x": text}), at=BY_X)

    def test_a_year_that_nobody_can_hold_is_a_year(self):
        at = state(metadata([column("x", "date"), "v"], ["x"]))
        prepared(add("a", {"x": "+12345-01-01"}), at=at)

    @pytest.mark.parametrize("text", [None, ""])
    def test_not_null_columns_have_values(self, text):
        at = state(metadata([column("x", nullable=False), "v"], ["x"]))
        invalid = refused(add("a", {"x": text}), at=at)
        assert invalid.code is Code.PARTITION_MISMATCH
        assert "NOT NULL" in invalid.detail
        prepared(add("a", {"x": "1"}), at=at)

    def test_a_remove_may_leave_them_out(self):
        prepared(remove("a"), remove("b", partitionValues={}), at=BY_X)
        prepared(remove("b", partitionValues={"x": "1"}), at=BY_X)

    def test_but_not_have_others(self):
        invalid = refused(remove("a", partitionValues={"v": "1"}), at=BY_X)
        assert invalid.code is Code.PARTITION_MISMATCH

    def test_a_replaced_table_removes_files_of_the_old_partitioning(self):
        new = metadata(["x", "v"], ["v"])
        old_file = remove("a", partitionValues={"x": "1"})
        prepared(new, old_file, add("b", {"v": "1"}), at=BY_X, operation="REPLACE TABLE")
        invalid = refused(new, add("b", {"x": "1"}), at=BY_X, operation="REPLACE TABLE")
        assert invalid.code is Code.PARTITION_MISMATCH


class TestStatistics:
    @pytest.mark.parametrize(
        "stats", ["", "[]", "5", "{", '{"numRecords":-1}', '{"numRecords":"1"}']
    )
    def test_they_are_an_object_of_sane_types(self, stats):
        invalid = refused(add(stats=stats))
        assert invalid.code is Code.INVALID_ACTION
        assert "stats" in invalid.detail

    @pytest.mark.parametrize("stats", [None, "{}", '{"numRecords":0}', '{"later":{}}'])
    def test_they_may_say_little(self, stats):
        prepared(add(stats=stats))


class TestDuplicates:
    @pytest.mark.parametrize(
        "actions",
        [
            [add("a"), add("a", size=2)],
            [remove("a"), remove("a", dataChange=False)],
            [remove("a", dataChange=False), add("a", dataChange=False)],
            [add("a"), remove("a")],
            [add("x%41y"), add("xAy")],
            [remove("x%2Dy"), add("x-y")],
        ],
    )
    def test_one_logical_file_once(self, actions):
        invalid = refused(add("other"), *actions)
        assert (invalid.code, invalid.action_index) == (Code.DUPLICATE_ACTION, 2)
        assert invalid.path == actions[-1].path

    def test_a_file_with_a_new_deletion_vector_takes_its_own_place(self):
        prepared(remove("a"), add("a", stats=wide(), deletionVector=vector()), at=VECTORS)
        one, other = vector(offset=1), vector(offset=2)
        prepared(
            add("a", stats=wide(), deletionVector=other),
            remove("a", deletionVector=one),
            at=VECTORS,
        )

    def test_but_not_with_the_same_one(self):
        same = vector()
        invalid = refused(
            remove("a", deletionVector=same),
            add("a", stats=wide(), deletionVector=same),
            at=VECTORS,
        )
        assert invalid.code is Code.DUPLICATE_ACTION

    @pytest.mark.parametrize("make", [add, remove])
    def test_and_not_two_of_them(self, make):
        first = {"deletionVector": vector(offset=1)}
        second = {"deletionVector": vector(offset=2)}
        if make is add:
            first["stats"] = second["stats"] = wide()
        invalid = refused(make("a", **first), make("a", **second), at=VECTORS)
        assert invalid.code is Code.DUPLICATE_ACTION


class TestAppendOnly:
    AT = state(metadata(properties={"delta.appendOnly": "true"}))

    def test_nothing_is_removed(self):
        invalid = refused(add("b"), remove("a"), at=self.AT)
        assert (invalid.code, invalid.action_index) == (Code.APPEND_ONLY, 1)

    def test_files_may_be_rearranged(self):
        prepared(remove("a", dataChange=False), add("b", dataChange=False), at=self.AT)

    def test_a_commit_does_not_escape_by_ending_it(self):
        assert refused(metadata(), remove("a"), at=self.AT).code is Code.APPEND_ONLY

    def test_nor_by_beginning_it(self):
        new = metadata(properties={"delta.appendOnly": "true"})
        assert refused(new, remove("a")).code is Code.APPEND_ONLY


GOOD = {"stats": wide(), "deletionVector": vector()}


class TestDeletionVectors:
    def test_a_table_must_allow_them(self):
        supported = state(table_protocol=features(readers=["deletionVectors"]))
        for at in (state(), supported):
            invalid = refused(add(**GOOD), at=at)
            assert invalid.code is Code.DELETION_VECTORS_DISALLOWED

    def test_files_that_have_one_may_be_described_again(self):
        supported = state(table_protocol=features(readers=["deletionVectors"]))
        prepared(add(**GOOD), at=supported, operation="COMPUTE STATS")
        invalid = refused(add(**GOOD), operation="COMPUTE STATS")
        assert invalid.code is Code.DELETION_VECTORS_DISALLOWED

    @pytest.mark.parametrize("stats", [None, "{}", '{"tightBounds":false}'])
    def test_the_number_of_rows_must_be_known(self, stats):
        invalid = refused(add(**{**GOOD, "stats": stats}), at=VECTORS)
        assert invalid.code is Code.DELETION_VECTOR_MISSING_NUM_RECORDS

    @pytest.mark.parametrize("tight", [{}, {"tightBounds": True}])
    def test_bounds_must_be_wide(self, tight):
        stats = json.dumps({"numRecords": 10, **tight})
        invalid = refused(add(**{**GOOD, "stats": stats}), at=VECTORS)
        assert invalid.code is Code.DELETION_VECTOR_TIGHT_BOUNDS
        prepared(add(**{**GOOD, "stats": stats}), at=VECTORS, operation="RESTORE")

    @pytest.mark.parametrize(
        ("bad", "code"),
        [
            ({"storageType": "p", "pathOrInlineDv": "b/k"}, Code.INVALID_PATH),
            ({"storageType": "x"}, Code.INVALID_PATH),
            ({"pathOrInlineDv": "short"}, Code.INVALID_PATH),
            ({"pathOrInlineDv": "../" + "a" * 20}, Code.INVALID_PATH),
            ({"cardinality": -1}, Code.INVALID_ACTION),
            ({"sizeInBytes": -1}, Code.INVALID_ACTION),
            ({"offset": -1}, Code.INVALID_ACTION),
        ],
    )
    def test_a_descriptor_that_cannot_be(self, bad, code):
        assert refused(add(stats=wide(), deletionVector=vector(**bad)), at=VECTORS).code is code
        assert refused(remove(deletionVector=vector(**bad)), at=VECTORS).code is code

    @pytest.mark.parametrize(
        "good",
        [
            {"pathOrInlineDv": "ab" + "a" * 20},
            {"storageType": "i", "pathOrInlineDv": "0rr91", "offset": None},
            {"storageType": "p", "pathOrInlineDv": "s3://b/k"},
        ],
    )
    def test_with_a_prefix_or_inline_or_absolute(self, good):
        prepared(add(stats=wide(), deletionVector=vector(**good)), at=VECTORS)


def test_change_data_files_need_the_feature():
    invalid = refused(add(), cdc())
    assert (invalid.code, invalid.action_index) == (Code.UNSUPPORTED_FEATURE, 1)
    assert "changeDataFeed" in invalid.detail
