"""Which schemas and partition columns a table may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import STORED_PRIMITIVES, decimal_types, schemas
from tidegate_protocol.schema.table_schema import (
    INTEGER,
    LONG,
    MAX_FIELDS,
    MAX_NAME_LENGTH,
    MAX_PATH_CHARACTERS,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    Field,
    InvalidSchema,
    MapType,
    StructType,
    check_partition_columns,
    parse_schema,
    to_json,
    validate_table_schema,
)


def struct(**fields: DataType) -> StructType:
    return StructType(fields=tuple(Field(name=name, type=of) for name, of in fields.items()))


def named(*names: str) -> StructType:
    return StructType(fields=tuple(Field(name=name, type=LONG) for name in names))


class TestSchema:
    @given(schemas)
    def test_sound_schemas_pass(self, schema):
        validate_table_schema(schema)

    def test_a_wide_table_passes_up_to_a_limit(self):
        wide = named(*(f"c{i}" for i in range(MAX_FIELDS)))
        assert parse_schema(to_json(wide)) == wide
        with pytest.raises(InvalidSchema, match="more than 10000 fields"):
            parse_schema(to_json(named(*(f"c{i}" for i in range(MAX_FIELDS + 1)))))

    def test_fields_inside_are_counted(self):
        inner = named(*(f"c{i}" for i in range(MAX_FIELDS)))
        with pytest.raises(InvalidSchema, match="more than 10000 fields"):
            parse_schema(to_json(struct(a=ArrayType(element=inner, contains_null=True))))

    def test_long_names_of_what_fields_lie_in_are_counted_with_each(self):
        def nested(fields):
            inner = named(*(f"c{i}" for i in range(fields)))
            for _ in range(50):
                inner = struct(**{"a" * MAX_NAME_LENGTH: inner})
            return to_json(inner)

        most = MAX_PATH_CHARACTERS // (50 * MAX_NAME_LENGTH) - 50
        assert parse_schema(nested(most))
        with pytest.raises(InvalidSchema, match="more than 8000000 characters together"):
            parse_schema(nested(most + 50))

    def test_a_long_name_passes_up_to_a_limit(self):
        assert parse_schema(to_json(named("a" * MAX_NAME_LENGTH)))
        with pytest.raises(InvalidSchema, match="longer than 1024 characters"):
            parse_schema(to_json(named("a" * (MAX_NAME_LENGTH + 1))))

    @pytest.mark.parametrize(
        ("schema", "why"),
        [
            (StructType(fields=()), "no columns"),
            (named("a", "b", "A"), "column 'A': there are two fields of this name"),
            (named("ä", "Ä"), "column 'Ä': there are two fields of this name"),
            (struct(s=named("a", "A")), "column 's.A': there are two"),
            (
                struct(s=ArrayType(element=named("a", "A"), contains_null=True)),
                "column 's.element.A': there are two",
            ),
            (
                struct(s=MapType(key=LONG, value=named("a", "A"), value_contains_null=True)),
                "column 's.value.A': there are two",
            ),
            (
                struct(s=MapType(key=named("a", "A"), value=LONG, value_contains_null=True)),
                "column 's.key.A': there are two",
            ),
            (named(""), "the name is empty"),
            (struct(a=VOID), "column 'a': the type void holds void"),
            (struct(a=ArrayType(element=VOID, contains_null=True)), "array<void> holds void"),
            (
                struct(a=MapType(key=LONG, value=VOID, value_contains_null=True)),
                "map<long,void> holds void",
            ),
            (struct(s=struct(a=VOID)), "column 's.a': the type void"),
            (struct(s=StructType(fields=())), "column 's': the struct has no fields"),
        ],
    )
    def test_unsound_schemas_are_refused(self, schema, why):
        with pytest.raises(InvalidSchema, match=why):
            validate_table_schema(schema)

    @pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
    def test_characters_that_parquet_forbids(self, character):
        schema = struct(s=ArrayType(element=named(f"a{character}b"), contains_null=True))
        with pytest.raises(InvalidSchema, match="the name contains the character"):
            validate_table_schema(schema)
        validate_table_schema(schema, column_mapping=True)

    def test_no_name_holds_nul(self):
        with pytest.raises(InvalidSchema, match="the name contains the character"):
            validate_table_schema(named("a\0b"), column_mapping=True)

    def test_dots_and_backticks_are_no_trouble(self):
        validate_table_schema(named("a.b", "`", "a-b", "ä", "1"))

    def test_the_same_name_in_two_structs_is_no_duplicate(self):
        validate_table_schema(struct(a=named("x"), b=named("x"), x=LONG))


class TestPartitionColumns:
    SCHEMA = struct(
        Year=INTEGER,
        Name=STRING,
        v=VARIANT,
        s=named("a"),
        a=ArrayType(element=LONG, contains_null=True),
    )

    def test_they_are_spelled_as_the_schema_does(self):
        assert check_partition_columns(self.SCHEMA, ["name", "YEAR"]) == ("Name", "Year")

    def test_a_table_needs_none(self):
        assert check_partition_columns(self.SCHEMA, []) == ()

    @pytest.mark.parametrize(
        ("columns", "why"),
        [
            (["x"], "'x' is not a column of the table; it has 'Year, Name, v, s, a'"),
            (["s.a"], "'s.a' is not a column"),
            (["Year", "year"], "'Year' is named twice"),
            (["v"], "'v' has the type variant, which cannot"),
            (["s"], "'s' has the type struct<a:long>"),
            (["a"], "'a' has the type array<long>"),
        ],
    )
    def test_what_cannot_partition_a_table(self, columns, why):
        with pytest.raises(InvalidSchema, match=why):
            check_partition_columns(self.SCHEMA, columns)

    def test_a_column_is_left_for_data(self):
        with pytest.raises(InvalidSchema, match="expected one to be left"):
            check_partition_columns(named("a", "b"), ["a", "b"])
        assert check_partition_columns(named("a", "b"), ["a"]) == ("a",)

    @given(st.sampled_from(STORED_PRIMITIVES) | decimal_types)
    def test_every_stored_primitive_type_can_partition(self, data_type):
        assert check_partition_columns(struct(p=data_type, v=LONG), ["P"]) == ("p",)
