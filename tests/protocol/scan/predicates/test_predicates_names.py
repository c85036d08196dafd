"""Predicate text: the columns that it names."""

import pytest

from tests.protocol.judging import predicate, refusal


class TestColumns:
    STRUCT = {  # noqa: RUF012
        "type": "struct",
        "fields": [
            {"name": "b.c", "type": "integer", "nullable": True, "metadata": {}},
            {
                "name": "d",
                "type": {
                    "type": "struct",
                    "fields": [{"name": "E", "type": "long", "nullable": True, "metadata": {}}],
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }
    COLUMNS = {  # noqa: RUF012
        "x": "integer",
        "a": STRUCT,
        "with space": "integer",
        "tick`s": "integer",
        "dotted.name": "integer",
        "m": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        "l": {"type": "array", "elementType": STRUCT, "containsNull": True},
    }

    @pytest.mark.parametrize(
        "text",
        [
            "x = 1",
            "`x` = 1",
            "X = 1",
            "a.`b.c` = 1",
            "A.D.e = 1",
            "`a`.`d`.`e` = 1",
            "`with space` = 1",
            "`WITH SPACE` = 1",
            "`tick``s` = 1",
            "`dotted.name` = 1",
            "m.anything = 1",
            "m['key'] = 1",
            "l.d.e IS NULL",
            "l[0].d.e = 1",
            "element_at(m, 'k') = 1",
            "exists(l, e -> e.d.e > x)",
            "transform(l, (e, i) -> i)[0] = 1",
            "struct(x AS y).y = 1",
            "date_add(DAY, 1, DATE '2024-01-01') = DATE '2024-01-02'",
            "current_date = DATE '2024-01-01'",
            "current_user() = 'me'",
        ],
    )
    def test_known_ones(self, text):
        predicate(text, self.COLUMNS)

    @pytest.mark.parametrize(
        ("text", "name", "position"),
        [
            ("y = 1", "y", 0),
            ("x = y", "y", 4),
            ("x = 1 AND Y > 2", "Y", 10),
            ("t.x = 1", "t.x", 0),
            ("x.y = 1", "x.y", 0),
            ("a.b = 1", "a.b", 0),
            ("a.d.f = 1", "a.d.f", 0),
            ("a.b.c = 1", "a.b.c", 0),
            ("dotted.name = 1", "dotted.name", 0),
            ("my_udf(x, y) = 1", "y", 10),
            ("rand() < y", "y", 9),
            ("exists(l, e -> e = y)", "y", 19),
            ("x IN (1, y)", "y", 9),
            ("0x1F = x", None, None),
            ("a.d.E.f.g.h = 1", "a.d.E.f.g.h", 0),
        ],
    )
    def test_unknown_ones_are_refused(self, text, name, position):
        error = refusal(text, self.COLUMNS)
        if name is not None:
            assert f"no column '{name}'" in str(error)
            assert error.position == position

    @pytest.mark.parametrize(
        "word",
        """
        date timestamp day year month interval end start order group user value values key type
        left right select from to table row rows index current_date div escape then when else if
        first last filter over all any some distinct unknown string int array map struct show
        comment add set desc default union join limit where with window default cluster match
        """.split(),  # noqa: SIM905
    )
    def test_may_be_called_like_words_of_sql(self, word):
        parsed = predicate(f"{word} = 1 AND 2 > {word} OR {word} IN (5)", {word: "integer"}, [word])
        assert parsed.matches_partition({word: "1"})
        assert not parsed.matches_partition({word: "2"})

    def test_a_column_comes_before_a_function_of_its_name(self):
        parsed = predicate("current_date = 1", {"current_date": "integer"}, ["current_date"])
        assert not parsed.matches_partition({"current_date": "2"})
