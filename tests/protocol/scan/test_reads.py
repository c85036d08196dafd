"""Which added file a transaction should have read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.actions import add, metadata
from tests.builders.lines import column
from tests.protocol.judging import schema
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.predicates import InvalidPredicate
from tidegate_protocol.scan.reads import ReadPredicates

COLUMNS = schema({"x": "integer", "v": "integer"})


def first(adds, *predicates, partition_by=("x",), use_statistics=False, **reads):
    parsed = ReadPredicates.parse(Reads(predicates=predicates, **reads), COLUMNS, partition_by)
    match = parsed.first_match(adds, use_statistics=use_statistics)
    return None if match is None else match.path


def in_partition(path, x, **stats):
    return add(path, {"x": x}, stats=json.dumps({"numRecords": 5, **stats}))


def of_values(path, low, high, x="1"):
    return in_partition(path, x, minValues={"v": low}, maxValues={"v": high}, nullCount={"v": 0})


FILES = [
    in_partition("a", "1"),
    in_partition("b", "2"),
    in_partition("c", "2"),
    in_partition("n", None),
]


class TestPartitionedTable:
    @pytest.mark.parametrize(
        ("predicates", "expected"),
        [
            (["x = 2"], "b"),
            (["x = 3"], None),
            (["x IS NULL"], "n"),
            (["true"], "a"),
            (["1 = 2"], None),
            (["x = 3", "x = 1"], "a"),
            # Predicate by predicate, as Delta asks them.
            (["x = 2", "x = 1"], "b"),
            (["v > 100"], "a"),
            (["x = 2 AND v > 100"], "b"),
            (["rand() < 0.5"], "a"),
            ([], None),
        ],
    )
    def test_predicates(self, predicates, expected):
        assert first(FILES, *predicates) == expected

    def test_files_that_were_read_say_nothing_of_added_ones(self):
        assert first(FILES, files=frozenset({"a"})) is None

    def test_an_application_id_is_no_file(self):
        assert first(FILES, app_ids=frozenset({"app"})) is None

    def test_the_whole_table(self):
        assert first(FILES, whole_table=True) == "a"
        assert first(FILES, "x = 2", whole_table=True) == "a"

    def test_no_files(self):
        assert first([], "true", whole_table=True) is None


class TestUnpartitionedTable:
    """Its predicates are never looked at."""

    @pytest.mark.parametrize("predicates", [["1 = 2"], ["v > 100"], ["true"], []])
    def test_any_file_matches(self, predicates):
        files = [add("a"), add("b")]
        assert first(files, *predicates, partition_by=()) == "a"
        assert first([], *predicates, partition_by=()) is None

    def test_predicates_must_be_readable_all_the_same(self):
        with pytest.raises(InvalidPredicate):
            first([], "y = 1", partition_by=())


class TestStatistics:
    """Where the table asks for it, files are spared in which no row can match."""

    FILES = (
        of_values("low", 1, 5),
        of_values("high", 100, 200),
        of_values("other", 150, 300, x="2"),
    )

    @pytest.mark.parametrize(
        ("predicates", "expected"),
        [
            (["v > 100"], "high"),
            (["v > 400"], None),
            (["v = 3"], "low"),
            (["x = 2 AND v > 100"], "other"),
            (["x = 2 AND v < 100"], None),
            (["v > 400", "v < 2"], "low"),
            (["v IS NULL"], None),
            (["my_udf(v)"], "low"),
            (["1 = 2"], None),
        ],
    )
    def test_spare_files(self, predicates, expected):
        for partition_by in (("x",), ()):
            text = predicates
            if not partition_by and "x = " in predicates[0]:
                continue
            assert (
                first(self.FILES, *text, partition_by=partition_by, use_statistics=True) == expected
            )

    def test_are_not_looked_at_otherwise(self):
        assert first(self.FILES, "v > 400") == "low"
        assert first(self.FILES, "v > 400", partition_by=()) == "low"

    def test_the_whole_table_is_the_whole_table(self):
        assert first(self.FILES, "v > 400", whole_table=True, use_statistics=True) == "low"

    def test_without_predicates_there_is_nothing_to_look_up(self):
        # A transaction that only removes files of an unpartitioned table depends on all of it.
        assert first(self.FILES, partition_by=(), use_statistics=True) == "low"
        assert first(self.FILES, use_statistics=True) is None

    @pytest.mark.parametrize("stats", [None, "", "{", "[]", '{"minValues": 1}', "{}"])
    def test_that_cannot_be_read_prove_nothing(self, stats):
        assert first([add("a", {"x": "1"}, stats=stats)], "v > 400", use_statistics=True) == "a"

    def test_what_conflict_detection_rules_out_stays_out(self):
        assert first(self.FILES, "x = 3 AND v = 3", use_statistics=True) is None


class TestParsing:
    def test_errors_name_the_predicate(self):
        with pytest.raises(InvalidPredicate) as caught:
            first([], "x = 1", "x = ")
        assert "reads.predicates[1]: syntax error" in str(caught.value)
        assert caught.value.position == 2
        assert str(caught.value).count("at character") == 1


class TestPredicatesOfATable:
    """`over` remembers predicates by all that they depend on."""

    READS = Reads(predicates=("x = 2",))

    def of(self, columns: dict[str, str], *partition_columns: str) -> ReadPredicates:
        fields = [column(name, type_) for name, type_ in columns.items()]
        return ReadPredicates.over(self.READS, metadata(fields, partition_columns))

    def test_it_is_what_parsing_gives(self):
        assert self.of({"x": "integer", "v": "integer"}, "x") == ReadPredicates.parse(
            self.READS, COLUMNS, ("x",)
        )

    def test_other_columns_are_another_predicate(self):
        number, text = self.of({"x": "integer"}, "x"), self.of({"x": "string"}, "x")
        partitions = [(("x", "02"),), (("x", "3"),)]
        assert [*number.covered(partitions)] == partitions[:1]
        assert [*text.covered(partitions[1:])] == []
        assert not self.of({"x": "integer"}).is_partitioned

    def test_what_cannot_be_parsed_is_named_each_time(self):
        for _ in range(2):
            with pytest.raises(InvalidPredicate, match=r"reads.predicates\[0\]"):
                self.of({"y": "integer"})


class TestManyFiles:
    """Files of one partition are judged together, however many predicates there are."""

    @given(
        st.lists(st.sampled_from(["x = 1", "x = 2", "v > 5", "x = 2 AND v < 3"]), max_size=3),
        st.lists(st.tuples(st.sampled_from(["1", "2", "3", None]), st.integers(0, 9)), max_size=8),
        st.booleans(),
    )
    def test_the_first_predicate_that_any_matches_tells_the_file(self, texts, files, statistics):
        reads = ReadPredicates.parse(Reads(predicates=tuple(texts)), COLUMNS, ("x",))
        adds = [of_values(f"f{at}", v, v, x=x) for at, (x, v) in enumerate(files)]
        expected = (
            file
            for each in reads.predicates
            for file in adds
            if each.matches_partition(file.partition_values)
            and (not statistics or each.may_match(file.partition_values, statistics_of(file.stats)))
        )
        found = reads.first_match(adds, use_statistics=statistics)
        assert found is next(expected, None)
