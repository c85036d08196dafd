"""What a set of predicates leaves of partitions and files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log.statistics import statistics_of, statistics_reader
from tidegate_protocol.scan.predicates import parse_predicate
from tidegate_protocol.scan.pruning import pruning_of
from tidegate_protocol.schema.table_schema import parse_schema

SCHEMA = parse_schema(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "p", "type": "string", "nullable": True, "metadata": {}},
                {"name": "v", "type": "long", "nullable": True, "metadata": {}},
                {"name": 'o"\\', "type": "long", "nullable": True, "metadata": {}},
                {
                    "name": "s",
                    "type": {
                        "type": "struct",
                        "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}],
                    },
                    "nullable": True,
                    "metadata": {},
                },
            ],
        }
    )
)


def pruning(*texts):
    return pruning_of([parse_predicate(text, SCHEMA, ("p",)) for text in texts])


@pytest.mark.parametrize(
    ("texts", "by_partition", "by_file"),
    [
        (("p = 'a'",), True, False),
        (("p = 'a'", "p = 'b'"), True, False),
        (("p = 'a' and v = 1",), True, True),
        (("p = 'a'", "v = 1"), False, True),
        (("v = 1",), False, True),
        (("p = 'a'", "false"), True, False),
    ],
)
def test_what_has_to_be_looked_at(texts, by_partition, by_file):
    found = pruning(*texts)
    assert (found.by_partition, found.by_file) == (by_partition, by_file)


@pytest.mark.parametrize("texts", [(), ("true",), ("p = 'a'", "1 = 1"), ("unheard_of(1)",)])
def test_what_needs_every_file(texts):
    assert pruning(*texts) is None


@pytest.mark.parametrize("texts", [("false",), ("1 = 2", "false and true")])
def test_what_needs_no_file(texts):
    assert pruning(*texts).predicates == []


def test_partitions():
    found = pruning("p = 'a' and v = 1", "p > 'x'")
    values = ['{"p":"a"}', '{"p":"b"}', '{"p":"y"}', '{"p":null}']
    assert [found.needs_partition(each) for each in values] == [True, False, True, False]
    # Another writer may have left it out.
    assert found.needs_partition("{}")


def numbers():
    return st.none() | st.integers(-3, 3) | st.just("text") | st.just(2**70)


def parts():
    return st.none() | st.dictionaries(
        st.sampled_from(["v", "s", 'o"\\', "other"]),
        numbers() | st.dictionaries(st.sampled_from(["a", "b"]), numbers()),
    )


def statistics():
    whole = st.fixed_dictionaries(
        {},
        optional={
            "numRecords": st.none() | st.integers(-1, 3),
            "tightBounds": st.booleans() | st.none(),
            "minValues": parts(),
            "maxValues": parts() | st.just([]),
            "nullCount": parts(),
        },
    )
    return st.none() | st.sampled_from(["", "[]", "{", "null"]) | whole.map(json.dumps)


PREDICATES = [
    "v > 1",
    "s.a = 2 and p = 'a'",
    "v is null",
    "s.a is not null",
    '`o"\\` < 0',
    "p = 'b'",
]


@given(
    st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), statistics()), max_size=8),
)
def test_files_are_judged_as_by_each_predicate_alone(texts, files):
    predicates = [parse_predicate(text, SCHEMA, ("p",)) for text in texts]
    needed = pruning_of(predicates).needed(
        [json.dumps({"p": p}) for p, _ in files], [stats for _, stats in files]
    )
    assert needed == [
        place
        for place, (p, stats) in enumerate(files)
        if any(one.may_match({"p": p}, statistics_of(stats)) for one in predicates)
    ]


def test_statistics_of_other_columns_are_passed_over():
    read = statistics_reader(["v"])
    stats = read('{"numRecords":2,"minValues":{"x":1,"v":5},"nullCount":null}')
    long = SCHEMA.field("v").type
    assert stats.minimum(("v",), long) == 5
    assert stats.maximum(("v",), long) is None
    assert stats.null_count(("v",)) is None
    assert read('{"minValues":{"x":1,"v":5},"nullCount":7}') is None
    assert read(None) is None
