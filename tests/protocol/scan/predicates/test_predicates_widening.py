"""What Delta's conflict detection leaves out of a predicate, and what it takes for true."""

import pytest

from tests.protocol.judging import matches, predicate, refusal


class TestDataColumns:
    """Operands of the AND at the top that name a data column are left out."""

    @pytest.mark.parametrize(
        ("text", "value", "expected"),
        [
            ("v > 100", "7", True),
            ("x = 1 AND v > 100", "1", True),
            ("x = 1 AND v > 100", "2", False),
            ("v > 100 AND s = 'a' AND x = 1", "2", False),
            ("(x = 1 AND v > 100)", "2", False),
            ("((x = 1) AND (v > 100 AND x < 9))", "2", False),
            ("x = 1 AND (v > 100 OR x = 2)", "1", True),
            ("x = v", "7", True),
            ("coalesce(v, x) = 1", "7", True),
            # Below anything else, a data column takes all around it along.
            ("x = 1 OR v > 100", "7", True),
            ("(x = 1 AND v > 100) OR (x = 2 AND v < 50)", "7", True),
            ("NOT (x <> 1 OR v > 100)", "7", True),
            ("x = 1 AND NOT (x <> 2 OR v > 100)", "1", True),
            ("(x = 1 AND v = 1) IS TRUE", "7", True),
            ("CASE WHEN v = 1 THEN false ELSE false END", "7", True),
            ("x IN (1, v)", "7", True),
            ("array(v = 1 AND v = 2, true)[0] AND x = 1", "1", True),
            ("array(v, 1)[0] = x", "7", True),
            ("x BETWEEN 1 AND v", "0", True),
            ("my_udf(v) AND x = 1", "2", False),
            # Constants name no column.
            ("1 = 2", "1", False),
            ("1 = 1", "1", True),
            ("v > 100 AND 1 = 2", "1", False),
            ("false", None, False),
            ("true", None, True),
        ],
    )
    def test_are_left_out(self, text, value, expected):
        assert matches(text, value) is expected

    def test_nested_fields_are_data(self):
        inner = {
            "type": "struct",
            "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
        }
        parsed = predicate("st.x = 1 AND x = 1", {"st": inner, "x": "integer"})
        assert parsed.matches_partition({"x": "1"})
        assert not parsed.matches_partition({"x": "2"})

    def test_an_unpartitioned_table_has_data_columns_only(self):
        assert predicate("v > 100", partition_by=[]).matches_partition({})
        assert not predicate("1 = 2", partition_by=[]).matches_partition({})


class TestWhatIsNotEvaluated:
    """SQL that the parser knows counts as true, with what is around it but AND and OR."""

    UNKNOWN = (
        "x = (SELECT 1)",
        "(select max(x) from t) = x",
        "x IN (SELECT y FROM other WHERE other.z > 7)",
        "x NOT IN (WITH a AS (SELECT 1) SELECT * FROM a)",
        "x IN (VALUES 8, 9)",
        "x IN ((SELECT 8) UNION (SELECT 9))",
        "(x, 1) IN (SELECT a, b FROM t)",
        "EXISTS (SELECT 1)",
        "NOT EXISTS (SELECT y FROM other o WHERE o.y = x)",
        "max(x) = 9",
        "count(*) > 9",
        "COUNT(DISTINCT x) > 9",
        "first(x) IGNORE NULLS = 9",
        "sum(x) OVER (PARTITION BY v ORDER BY s) = 9",
        "abs(x) over () = 9",
        "explode(array(x)) = 9",
        "any(x = 9)",
        "x LIKE ANY (SELECT s FROM t)",
        "x LIKE ANY ('8', '9')",
        "x NOT LIKE ALL ('1', '9')",
        "_metadata.file_path = 'a'",
    )

    @pytest.mark.parametrize("unknown", UNKNOWN)
    def test_it_may_match(self, unknown):
        assert matches(unknown, "1")
        assert matches(f"x = 1 AND {unknown}", "1")
        assert not matches(f"x = 1 AND {unknown}", "2")
        assert matches(f"x = 1 OR {unknown}", "2")
        assert matches(f"NOT ({unknown})", "1")
        assert predicate(unknown).may_match({"x": "1"}, None)

    def test_columns_outside_of_queries_are_the_tables(self):
        assert "no column 'nope'" in str(refusal("x IN (SELECT nope FROM t) AND nope = 1"))
        assert "no column 'nope'" in str(refusal("max(nope) = 1"))

    def test_a_column_may_be_called_like_the_first_word_of_a_query(self):
        columns = {"x": "integer", "values": "integer", "with": "integer", "_metadata": "integer"}
        partition = {"x": "1", "values": "2", "with": "3", "_metadata": "4"}
        parsed = predicate(
            "(values = 2) AND (with = 3) AND _metadata = 5", columns, partition_by=list(columns)
        )
        assert parsed.matches_partition({**partition, "_metadata": "5"})
        assert not parsed.matches_partition(partition)


class TestForeignFunctions:
    """Functions that are not deterministic, or not known here, count as true."""

    FOREIGN = ("rand() < 0.5", "my_udf(x) = 7", "NOT my_udf(x)", "x > uuid()", "x = 1 + rand()")

    @pytest.mark.parametrize("foreign", FOREIGN)
    @pytest.mark.parametrize(
        ("text", "value", "expected"),
        [
            ("{}", "5", True),
            ("x = 1 AND {}", "1", True),
            ("x = 1 AND {}", "2", False),
            ("{} AND x = 1", "2", False),
            ("x = 1 OR {}", "2", True),
            ("x = 1 OR (x = 2 AND {})", "2", True),
            ("x = 1 OR (x = 2 AND {})", "3", False),
            ("x = 1 AND (x = 9 OR {})", "1", True),
            ("x = 1 AND (x = 9 OR {})", "2", False),
            ("(x = 1 OR {}) AND (x = 2 OR {})", "3", True),
            # Below anything but AND and OR it takes all around it along: NOT TRUE would be wrong.
            ("NOT ({})", "5", True),
            ("NOT (x = 1 AND {})", "1", True),
            ("NOT (x = 1 OR {})", "1", True),
            ("x = 1 AND NOT (x = 1 OR {})", "1", True),
            ("x = 2 OR NOT (x = 1 OR {})", "1", True),
            ("x = 1 AND (x = 2 OR (x = 1 AND NOT (x = 1 OR {})))", "1", True),
            ("(x = 1 AND {}) IS NULL", "2", True),
            ("(x = 1 AND {}) IS NOT TRUE", "1", True),
            ("(x = 1 AND {}) = true", "2", True),
            ("CASE WHEN {} THEN false ELSE false END", "1", True),
            ("coalesce({}, false) AND x = 1", "2", False),
            ("if({}, false, false)", "1", True),
            ("x IN (5, 6) AND {}", "7", False),
        ],
    )
    def test_by_their_place(self, foreign, text, value, expected):
        assert matches(text.replace("{}", foreign), value) is expected

    @pytest.mark.parametrize(
        "text",
        [
            "x > 100 + CAST(rand() * 10 AS INT)",
            "x IN (1, rand())",
            "x LIKE concat(uuid(), '%')",
            "abs(my_udf(x)) = 1",
            "x = current_timestamp()",
            "x = current_date",
            "CURRENT_USER = 'me'",
            "x & 1 = 1",
            "x << 1 = 4",
            "~x = 1",
            "x[0] = 1",
            "array(x)[0] = 1",
            "(x, 1) IN ((2, 1))",
            "x = INTERVAL 1 DAY",
            "x AT TIME ZONE 'UTC' = 1",
            "monotonically_increasing_id() = 5",
            "input_file_name() = 'a'",
            "catalog.schema.my_udf(x) = 1",
            "my_udf()",
            "exists(array(1), y -> y = 2)",
        ],
    )
    def test_whatever_they_are(self, text):
        assert matches(text, "5")
        assert matches(f"NOT ({text})", "5")
        assert not matches(f"x = 1 AND ({text})", "5")

    @pytest.mark.parametrize(
        "text", ["false = true > true", "x = 2 < 3 = true", "x = 1 IN (false)"]
    )
    def test_what_the_library_orders_differently_counts_as_one(self, text):
        # Spark reads comparisons from the left, whichever they are.
        assert matches(text, "1")
        assert matches(f"NOT ({text})", "1")

    def test_bounds_of_between_are_two_comparisons(self):
        assert not matches("x BETWEEN 5 AND my_udf(x)", "1")
        assert matches("x BETWEEN 5 AND my_udf(x)", "7")
        assert matches("x NOT BETWEEN 5 AND my_udf(x)", "7")
