"""CHECK constraints and generated columns: text that no writer could read is kept out of tables."""

from functools import partial

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import NO_TABLE, landed, ledger, prepared, state
from tests.builders.lines import column, vector
from tests.builders.proposals import proposal
from tests.protocol.racing import answer, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.prepare import expressions
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import Conflict, Invalid, PreparedTransaction, Reads
from tidegate_protocol.schema.data_types import StructType

GENERATED = "delta.generationExpression"
ARRAY = {"type": "array", "elementType": "integer", "containsNull": True}
STRUCT = {
    "type": "struct",
    "fields": [column("b"), column("arr", ARRAY)],
}
COLUMNS = (
    "num",
    column("text", "string"),
    column("a.b"),
    column("arr", ARRAY),
    column("s", STRUCT),
)
VECTORS = features(
    "checkConstraints", "generatedColumns", "invariants", readers=["deletionVectors"]
)
MAPPED = features("checkConstraints", "generatedColumns", readers=["columnMapping"])


def checked(*texts, columns=COLUMNS):
    constraints = {f"delta.constraints.c{at}": text for at, text in enumerate(texts)}
    return metadata(columns, properties=constraints)


def generated(text, *columns):
    return metadata([*(columns or COLUMNS), column("g", **{GENERATED: text})])


def mapped(name, number, **fields):
    marks = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    return column(name, **{**marks, **fields})


def named(*columns, highest, **properties):
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(highest)}
    return metadata(columns, properties={**mode, **properties})


def why_not(new, at=None, operation="ADD CONSTRAINT"):
    invalid = refused(new, at=at or state(metadata(COLUMNS)), operation=operation)
    assert invalid.code is Code.INVALID_SCHEMA
    return invalid.detail


class TestConstraints:
    @pytest.mark.parametrize(
        "text",
        [
            "num < 5 and text < 'd'",
            "true",
            "NUM > 0",
            "`a.b` IS NOT NULL",
            "s.arr[0] < 100 AND s.b > arr[1]",
            "num < rand() OR my_udf(num)",
            "exists(arr, x -> x > num)",
            "num > (SELECT max(id) FROM other)",
            "text LIKE 'a%' ESCAPE '!'",
            # Spark's grammar has what that of predicates here does not.
            "overlay(text PLACING 'a' FROM 1) = 'b'",
            "num > 0 /* positive */",
            "num > 0 -- positive",
        ],
    )
    def test_that_spark_reads_are_taken(self, text):
        at = state(metadata(COLUMNS))
        new = checked(text)
        assert prepared(new, at=at, operation="ADD CONSTRAINT").metadata == new

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("num <", "syntax error"),
            ("", "empty"),
            ("num > 1; DROP TABLE t", "';'"),
            ("num > 1, text = 'a'", "syntax error"),
            ("SELECT true", "query"),
            ("num > 1) FROM (x", "syntax error"),
            ("id < 5", "no column 'id'"),
            ("s.c = 1", "no column 's.c'"),
            ("3", "expected a condition"),
            ("text", "expected a condition"),
            ("num = " + "(" * 3000 + "1" + ")" * 3000, "deep"),
        ],
    )
    def test_that_nobody_reads_are_refused(self, text, why):
        for operation in ("ADD CONSTRAINT", "SET TBLPROPERTIES", "REPLACE TABLE", "X"):
            detail = why_not(checked("true", text), operation=operation)
            assert "the CHECK constraint 'c1'" in detail
            assert why in detail

    def test_a_new_table_has_none_either(self):
        invalid = refused(
            features("checkConstraints"), checked("id = 1"), at=NO_TABLE, operation="CREATE TABLE"
        )
        assert "no column 'id'" in invalid.detail

    def test_a_column_that_one_names_cannot_go(self):
        def named(*columns):
            mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
            return metadata(columns, properties={**mode, "delta.constraints.c": "num > 0"})

        def mapped(name, number):
            marks = {"id": number, "physicalName": f"c{number}"}
            return column(name, **{f"delta.columnMapping.{key}": v for key, v in marks.items()})

        at = state(named(mapped("num", 1), mapped("v", 2)), MAPPED)
        prepared(named(mapped("num", 1), mapped("w", 2)), at=at, operation="RENAME COLUMN")
        for columns in ([mapped("v", 2)], [mapped("n", 1), mapped("v", 2)]):
            assert "no column 'num'" in why_not(named(*columns), at)


class TestGeneratedColumns:
    @pytest.mark.parametrize(
        "text", ["num + 10", "CONCAT(text, 'y')", "`a.b` + s.b", "arr[1]", "rind()", "1", "NULL"]
    )
    def test_that_spark_reads_are_taken(self, text):
        at = state(metadata(COLUMNS))
        prepared(generated(text), at=at, operation="REPLACE TABLE")

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("c10 + 10", "no column 'c10'"),
            ("num +", "syntax error"),
            ("g + 1", "no column 'g'"),
            ("h + 1", "no column 'h'"),
            ("num + RAND()", "rand may have another value each time"),
            ("transform(arr, x -> x + rand())", "rand may have another value each time"),
            ("year(current_timestamp)", "current_timestamp may have another value each time"),
            ("unix_timestamp()", "unix_timestamp may have another value each time"),
        ],
    )
    def test_that_nobody_reads_are_refused(self, text, why):
        new = generated(text, *COLUMNS, column("h", **{GENERATED: "num"}))
        detail = why_not(new, operation="REPLACE TABLE")
        assert "the generated column 'g'" in detail
        assert why in detail

    def test_what_is_called_like_a_function_is_what_it_is(self):
        text = "user + unix_timestamp(text) + size(filter(arr, localtime -> localtime > now))"
        new = generated(text, *COLUMNS, "user", "now")
        prepared(new, at=state(metadata(COLUMNS)), operation="REPLACE TABLE")


class TestWhatATableHasAlready:
    """Another writer's, which was read in as it is."""

    ODD = checked("id < 5", "num >")

    def test_it_keeps(self):
        at = state(self.ODD)
        more = {**self.ODD.configuration, "owner": "me"}
        prepared(metadata(COLUMNS, properties=more), at=at, operation="SET TBLPROPERTIES")
        prepared(metadata([*COLUMNS, "z"], properties=more), at=at, operation="ADD COLUMNS")

    def test_it_does_not_get_more_of_them(self):
        at = state(self.ODD)
        assert "'c2'" in why_not(checked("id < 5", "num >", "y = 1"), at)
        assert "'c0'" in why_not(checked("id < 6", "num >"), at)

    @pytest.mark.parametrize("operation", ["RESTORE", "CLONE"])
    def test_they_come_back_with_what_had_them(self, operation):
        prepared(self.ODD, at=state(metadata(COLUMNS)), operation=operation)


@pytest.fixture
def read(monkeypatch):
    """The texts that were read."""
    texts = []
    monkeypatch.setattr(expressions, "check_expression", lambda text, *_, **__: texts.append(text))
    return texts


def constrained(*texts):
    return TableProperties.parse({f"delta.constraints.c{at}": x for at, x in enumerate(texts)})


def test_what_the_table_has_already_is_not_read_again(read):
    none = StructType(fields=())
    expressions.check_expressions(constrained("x > 0"), none, constrained("x > 0", "x < 9"), none)
    assert read == ["x < 9"]


def test_beyond_a_bound_new_ones_are_taken_as_they_are(read):
    """Reading one takes some microseconds a character."""
    none, long = StructType(fields=()), "x > 0 AND " * 700 + "x > 1"
    expressions.check_expressions(constrained(), none, constrained(*[long] * 9), none)
    assert len(read) == expressions.MOST_TEXT // len(long)


def test_others_may_go_on_while_one_is_read():
    """The one of a constraint, the one of a column, and a predicate of the same proposal."""
    at, long = state(metadata(COLUMNS)), " AND ".join(["num > 1"] * 100)
    paused = []
    for new in (checked("true"), checked(long), generated(long)):
        for reads in (Reads(), Reads(predicates=(f"{long} AND num > {len(paused)}",))):
            pauses: list[None] = []
            found = prepare(
                proposal(new, read_version=at.version, operation="REPLACE TABLE", reads=reads),
                at,
                pause=partial(pauses.append, None),
            )
            assert isinstance(found, PreparedTransaction)
            paused.append(len(pauses))
    assert paused[0] < 100
    assert all(pauses > 500 for pauses in paused[1:3])
    for before, after in zip(paused[::2], paused[1::2], strict=True):
        assert after > before + 500


class TestRowsThatThereAre:
    """A rule is made where they were read: only whoever proposes sees them."""

    INVARIANT = '{"expression": {"expression": "num > 0"}}'
    NEW = (
        checked("num > 0"),
        generated("num + 1"),
        metadata([*COLUMNS[1:], column("num", **{"delta.invariants": INVARIANT})]),
    )

    @pytest.mark.parametrize("new", NEW)
    def test_have_to_be_read(self, new):
        at = state(metadata(COLUMNS))
        mine = prepared(new, at=at, operation="SET TBLPROPERTIES")
        assert check_live_files(mine, []) is None
        invalid = check_live_files(mine, [add("a")])
        assert isinstance(invalid, Invalid)
        assert "(reads.whole_table)" in invalid.detail
        assert invalid.path == "a"
        read = prepared(new, at=at, operation="X", reads=Reads(whole_table=True))
        assert check_live_files(read, [add("a")]) is None

    @pytest.mark.parametrize("new", NEW)
    def test_those_that_go_with_it_need_not(self, new):
        mine = prepared(new, remove("a"), at=state(metadata(COLUMNS)), operation="REPLACE TABLE")
        assert check_live_files(mine, [add("a")]) is None

    @pytest.mark.parametrize("new", NEW)
    def test_a_file_that_is_added_again_stays(self, new):
        mine = prepared(new, add("a"), at=state(metadata(COLUMNS)), operation="SET TBLPROPERTIES")
        assert isinstance(check_live_files(mine, [add("a")]), Invalid)

    def test_so_does_one_that_gets_a_vector(self):
        marks = {"delta.enableDeletionVectors": "true"}
        new = metadata(COLUMNS, properties={**marks, "delta.constraints.c": "num > 0"})
        again = add("a", deletionVector=vector(), stats='{"numRecords":2,"tightBounds":false}')
        at = state(metadata(COLUMNS, properties=marks), VECTORS)
        mine = prepared(new, remove("a"), again, at=at, operation="DELETE")
        assert isinstance(check_live_files(mine, [add("a")]), Invalid)

    @pytest.mark.parametrize("new", NEW)
    def test_neither_where_the_rule_stays(self, new):
        assert prepared(new, at=state(new), operation="SET TBLPROPERTIES").demands == ()

    @pytest.mark.parametrize("text", ["num > 1", "NUM > 0"])
    def test_another_text_is_another_rule(self, text):
        mine = prepared(checked(text), at=state(checked("num > 0")), operation="X")
        assert check_live_files(mine, [add("a")]) is not None

    def test_a_column_that_is_called_otherwise_is_the_same(self):
        computed = mapped("g", 2, **{GENERATED: "num + 1"})
        at = state(named(mapped("num", 1), computed, highest=2), MAPPED)
        renamed = named(mapped("num", 1), {**computed, "name": "h"}, highest=2)
        assert prepared(renamed, at=at, operation="RENAME COLUMN").demands == ()

    def test_a_name_that_is_another_columns_makes_other_rules(self):
        rule = {"delta.constraints.c": "a > 0"}
        at = state(named(mapped("a", 1), mapped("b", 2), highest=2, **rule), MAPPED)
        for columns in (
            [mapped("b", 1), mapped("a", 2)],
            [mapped("x", 1), mapped("A", 2)],
            [mapped("a", 3), mapped("b", 2)],
            [mapped("A", 3), mapped("b", 2)],
        ):
            new = named(*columns, highest=3, **rule)
            mine = prepared(new, at=at, operation="RENAME COLUMN")
            assert isinstance(check_live_files(mine, [add("x")]), Invalid)

    def test_who_staged_the_next_version_has_read_the_one_before(self):
        rule = checked("num > 0")
        info = CommitInfo(timestamp=1)
        staged = StagedCommit(
            version=1, name="1.json", content=b"", actions=(rule,), commit_info=info, timestamp=1
        )
        mine = prepared(rule, at=state(metadata(COLUMNS)), staged=staged)
        assert mine.demands == ()

    def test_over_the_ledger(self):
        table = landed(ledger(), add("a", partitionValues={}))
        rule = metadata(["v"], properties={"delta.constraints.c": "v > 0"})
        assert isinstance(answer(table, rule, read_version=1, operation="X"), Invalid)
        whole = {"read_version": 1, "operation": "X", "reads": Reads(whole_table=True)}
        assert isinstance(answer(table, rule, **whole), Ratified)
        table = landed(table, add("b", partitionValues={}))
        assert isinstance(answer(table, rule, **whole), Conflict)
