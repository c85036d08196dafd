"""How much memory an action is counted as."""

import msgspec
import pytest

from tidegate_protocol.log.codec import decode
from tidegate_protocol.log.weights import UNIT_BYTES, has_more_values, weight_of_all


def test_metadata_counts_for_each_time_that_its_texts_are_held():
    line = b'{"metaData":{"id":"a","configuration":{"x":"%s"}}}' % (b"y" * 100 * UNIT_BYTES)
    assert 300 <= weight_of_all([decode(line)]) < 310


def test_entries_of_metadata_count():
    options = ",".join(f'"{number}":""' for number in range(10_000))
    for line in (
        '{"metaData":{"id":"a","configuration":{%s}}}',
        '{"metaData":{"id":"a","format":{"provider":"parquet","options":{%s}}}}',
    ):
        assert weight_of_all([decode((line % options).encode())]) > 10_000 * 100 // UNIT_BYTES


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ({"a": [1, 2, 3], "b": {"c": None}}, 7),
        ([[], [[]], {}], 5),
        ("a,b,[c]", 1),
        (({"a": "x,y"}, None), 4),
    ],
)
def test_values_are_counted_wherever_they_are(value, number):
    text = msgspec.json.encode(value)
    assert has_more_values(value, text, number - 1)
    assert not has_more_values(value, text, number)


def test_others_count_once():
    line = b'{"txn":{"appId":"%s","version":1}}' % (b"y" * 100 * UNIT_BYTES)
    assert 100 <= weight_of_all([decode(line)]) < 105
