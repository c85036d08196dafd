"""Schemas: their JSON, and finding fields."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import schemas
from tidegate_protocol.schema.table_schema import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DecimalType,
    Field,
    InvalidSchema,
    Leaf,
    MapType,
    StructType,
    parse_schema,
    physical_name,
    to_json,
    type_name,
    walk,
)

# The protocol's own example, laid out as Spark does.
EXAMPLE = (
    '{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,"metadata":{}},'
    '{"name":"b","type":{"type":"struct","fields":[{"name":"d","type":"integer","nullable":false,'
    '"metadata":{}}]},"nullable":true,"metadata":{}},{"name":"c","type":{"type":"array",'
    '"elementType":"integer","containsNull":false},"nullable":true,"metadata":{}},{"name":"e",'
    '"type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"d","type":"integer",'
    '"nullable":false,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}},'
    '{"name":"f","type":{"type":"map","keyType":"string","valueType":"string",'
    '"valueContainsNull":true},"nullable":true,"metadata":{}}]}'
)


def field(data_type: object = "integer", **changes: object) -> dict[str, object]:
    return {"name": "a", "type": data_type, "nullable": True, "metadata": {}, **changes}


def text(*fields: object) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def fields_in(node: object) -> int:
    if not isinstance(node, dict):
        return 0
    inner = [fields_in(node.get(key)) for key in ("elementType", "keyType", "valueType")]
    return sum(inner) + sum(1 + fields_in(field["type"]) for field in node.get("fields", []))


class TestJson:
    def test_the_protocols_example(self):
        schema = parse_schema(EXAMPLE)
        inner = StructType(fields=(Field(name="d", type=INTEGER, nullable=False),))
        assert schema == StructType(
            fields=(
                Field(name="a", type=INTEGER, nullable=False),
                Field(name="b", type=inner),
                Field(name="c", type=ArrayType(element=INTEGER, contains_null=False)),
                Field(name="e", type=ArrayType(element=inner, contains_null=True)),
                Field(name="f", type=MapType(key=STRING, value=STRING, value_contains_null=True)),
            )
        )
        assert to_json(schema) == EXAMPLE

    @given(schemas)
    def test_every_schema_is_read_back(self, schema):
        again = parse_schema(to_json(schema))
        assert again == schema
        assert hash(again) == hash(schema)

    @given(schemas)
    def test_the_layout_is_sparks(self, schema):
        compact = to_json(schema)
        loose = json.dumps(json.loads(compact), indent=1)
        assert to_json(parse_schema(loose)) == compact
        assert json.dumps(json.loads(compact), separators=(",", ":"), ensure_ascii=False) == compact

    def test_a_field_without_metadata_has_none(self):
        bare = field()
        del bare["metadata"]
        assert parse_schema(text(bare)).fields[0].metadata == {}

    @pytest.mark.parametrize(
        ("name", "parameters"),
        [("decimal(10,2)", (10, 2)), ("decimal( 38 , 38 )", (38, 38)), ("decimal(1,0)", (1, 0))],
    )
    def test_decimals(self, name, parameters):
        assert parse_schema(text(field(name))).fields[0].type == DecimalType(*parameters)

    @pytest.mark.parametrize(
        ("schema", "why"),
        [
            ("", "the schema: not valid JSON"),
            ("null", "the schema: expected the name of a type"),
            ("[]", "the schema: expected the name of a type"),
            ('"long"', "expected a struct as the schema, found long"),
            ('{"type":"array","elementType":"long","containsNull":true}', "found array<long>"),
            ("{}", "the schema: the type of an object is struct, array or map"),
            ('{"type":"struct"}', "the schema: expected 'fields' as an array"),
            ('{"type":"struct","type":"map"}', "'type' appears twice"),
            ('{"type":"struct","fields":[],"a":NaN}', "not valid JSON"),
            ('{"type":"struct","fields":[],"a":"\ud800"}', "surrogates"),
            ('{"type":"struct","fields":[],"a":"\\ud800"}', "not valid JSON"),
            (text(field(name="a\0b")), "NUL"),
            (text(5), "the schema: expected an object as a field"),
            (text(field(name=5)), "the schema: expected 'name' as a string"),
            (text(field(nullable="yes")), "column 'a': expected 'nullable' as a boolean"),
            (text(field(metadata=[])), "column 'a': expected 'metadata' as an object"),
            (text(field(metadata=None)), "column 'a': expected 'metadata' as an object"),
            (text(field("int")), "column 'a': there is no type 'int'"),
            (text(field("decimal(39,0)")), r"column 'a': decimal\(39,0\) is not a type"),
            (text(field("decimal(2,3)")), r"column 'a': decimal\(2,3\) is not a type"),
            (text(field("decimal(2,-3)")), "column 'a': there is no type"),
            (text(field("x" * 1000)), "column 'a': there is no type 'xxx"),
            (text(field(None)), "column 'a': expected the name of a type"),
            (text(field({"type": "udt"})), "not \"'udt'\""),
            (text(field({"type": {}})), "the type of an object is struct, array or map"),
            (
                text(field({"type": "array", "elementType": "long"})),
                "column 'a': expected 'containsNull'",
            ),
            (
                text(field({"type": "array", "elementType": "x", "containsNull": True})),
                "column 'a.element': there is no type 'x'",
            ),
            (
                text(field({"type": "map", "keyType": "x"})),
                "column 'a.key': there is no type 'x'",
            ),
            (
                text(field({"type": "map", "keyType": "long", "valueType": "x"})),
                "column 'a.value': there is no type 'x'",
            ),
            (
                text(field({"type": "struct", "fields": [field("x", name="b.c")]})),
                "column 'a.b.c': there is no type 'x'",
            ),
        ],
    )
    def test_what_is_no_schema_says_where_and_why(self, schema, why):
        with pytest.raises(InvalidSchema, match=why) as caught:
            parse_schema(schema)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400

    @pytest.mark.parametrize("levels", [100, 50_000])
    def test_depth_has_an_end(self, levels):
        nested = '{"type":"array","containsNull":true,"elementType":' * levels * 3
        with pytest.raises(InvalidSchema, match="nested deeper"):
            parse_schema(nested + '"long"' + "}" * levels * 3)

    @given(st.text())
    def test_no_text_is_any_other_error(self, schema):
        with pytest.raises(InvalidSchema):
            parse_schema(schema)


class TestNames:
    @pytest.mark.parametrize(
        "name", ["long", "decimal(10,2)", "array<long>", "map<string,long>", "struct<a:long>"]
    )
    def test_types_have_sql_names(self, name):
        types = {
            "long": LONG,
            "decimal(10,2)": DecimalType(10, 2),
            "array<long>": ArrayType(element=LONG, contains_null=True),
            "map<string,long>": MapType(key=STRING, value=LONG, value_contains_null=True),
            "struct<a:long>": StructType(fields=(Field(name="a", type=LONG),)),
        }
        assert type_name(types[name]) == name


MAPPED = StructType(
    fields=(
        Field(name="Id", type=LONG, nullable=False),
        Field(
            name="Place",
            type=StructType(
                fields=(
                    Field(name="City", type=STRING, nullable=False),
                    Field(
                        name="zip.code",
                        type=STRING,
                        metadata={"delta.columnMapping.physicalName": "col-2"},
                    ),
                )
            ),
            metadata={"delta.columnMapping.physicalName": "col-1"},
        ),
        Field(name="Tags", type=ArrayType(element=STRING, contains_null=True)),
    )
)


class TestLookUp:
    @pytest.mark.parametrize("name", ["Id", "id", "ID"])
    def test_a_field_is_found_whatever_its_case(self, name):
        assert MAPPED.field(name) is MAPPED.fields[0]

    @pytest.mark.parametrize("name", ["", "idx", "City", "Place.City"])
    def test_only_top_level_fields_are_found(self, name):
        assert MAPPED.field(name) is None

    def test_a_leaf_by_its_path(self):
        assert MAPPED.leaf(["place", "ZIP.CODE"]) == Leaf(
            path=("Place", "zip.code"), physical_path=("col-1", "col-2"), type=STRING, nullable=True
        )

    def test_a_leaf_is_nullable_when_a_struct_on_its_way_is(self):
        city = MAPPED.leaf(("Place", "City"))
        assert city is not None
        assert city.nullable
        top = MAPPED.leaf(("Id",))
        assert top is not None
        assert not top.nullable

    @pytest.mark.parametrize(
        "path", [(), ("x",), ("Place", "x"), ("Id", "x"), ("Tags", "element"), ("Place.City",)]
    )
    def test_other_paths_lead_nowhere(self, path):
        assert MAPPED.leaf(path) is None

    def test_leaves_come_depth_first(self):
        assert [leaf.path for leaf in MAPPED.leaves()] == [
            ("Id",),
            ("Place", "City"),
            ("Place", "zip.code"),
            ("Tags",),
        ]

    @given(schemas)
    def test_every_leaf_is_found_by_its_path(self, schema):
        for leaf in schema.leaves():
            assert schema.leaf(leaf.path) == leaf
            assert schema.leaf([name.lower() for name in leaf.path]) == leaf

    @given(schemas)
    def test_walking_meets_every_field(self, schema):
        met = [path for path, _, _ in walk(schema)]
        assert len(met) == fields_in(json.loads(to_json(schema)))
        assert {leaf.path for leaf in schema.leaves()} <= set(met)

    def test_without_a_mapping_the_physical_name_is_the_name(self):
        assert physical_name(MAPPED.fields[0]) == "Id"
        assert physical_name(MAPPED.fields[1]) == "col-1"
        odd = Field(name="a", type=LONG, metadata={"delta.columnMapping.physicalName": 5})
        assert physical_name(odd) == "a"
