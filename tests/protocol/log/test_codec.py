"""Log lines: what is kept byte for byte, and what no two readers would read alike."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import (
    Action,
    Add,
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from tidegate_protocol.log.codec import InvalidActionError, decode

ADD = {
    "path": "p=1/x.parquet",
    "partitionValues": {"p": "1"},
    "size": 1,
    "modificationTime": 2,
    "dataChange": True,
}


def line(kind: str = "add", **fields: object) -> bytes:
    return json.dumps({kind: {**ADD, **fields}}, separators=(",", ":")).encode()


def spliced(text: str) -> bytes:
    """An add with this JSON as one more field's value."""
    return line()[:-2] + b',"custom":' + text.encode("utf-8", "surrogatepass") + b"}}"


def decoded(raw: bytes) -> Action | None:
    try:
        return decode(raw)
    except InvalidActionError:
        return None


class TestKept:
    @pytest.mark.parametrize(
        "raw",
        [
            line(),
            line(custom={"a": [1, 2.50, None, "ä"]}, tags={"k": None}),
            spliced("1.10"),
            spliced("100000000000000000000000000000"),
            spliced("1E5"),
            spliced("-0"),
            spliced('"\\u00e4\\/\u2028\u2029\\ud83d\\ude00"'),
            spliced('{"z":1, "a" : 2 }'),
            b'{"add": {"stats" : "{\\"numRecords\\":1}",' + line()[8:],
            b'{"add":{" raw":"bm90IHJhdw==",' + line()[8:],
            b'{"add":{" raw":5,' + line()[8:],
            b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"new":true}}',
            b'{"newKind":{"a":1}}',
            b'{"newKind":null}',
            b'{"newKind":[1]}',
            b'{"":1}',
        ],
    )
    def test_every_byte_of_a_line_survives(self, raw):
        action = decode(raw)
        assert action.raw == raw
        assert codec.encode(action) == raw

    def test_white_space_around_a_line_is_not_part_of_it(self):
        assert decode(b" \t\r\n" + line() + b"\r\n ").raw == line()

    def test_line_breaks_between_tokens_are_taken_out_and_nothing_else(self):
        raw = b'{"add":\n {"path":"a\\nb" ,\r\n' + line()[8:].partition(b",")[2]
        kept = decode(raw)
        assert kept.raw == raw.replace(b"\r", b"").replace(b"\n", b"")
        assert isinstance(kept, Add)
        assert kept.path == "a\nb"
        assert decode(kept.raw) == kept

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(10**30), 10**30)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text().filter(lambda text: "\0" not in text),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text().filter(lambda key: "\0" not in key), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        st.sampled_from([None, 1]),
        st.booleans(),
    )
    def test_any_unknown_field_survives(self, value, indent, ascii_only):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        raw = spliced(text)
        action = decode(raw)
        assert action.raw == raw.replace(b"\n", b"")
        assert json.loads(action.raw)["add"]["custom"] == value
        assert decode(action.raw) == action


class TestTyped:
    def test_the_fields_of_an_add(self):
        vector = {
            "storageType": "u",
            "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
            "offset": 4,
            "sizeInBytes": 40,
            "cardinality": 6,
        }
        action = decode(line(stats='{"numRecords":1}', deletionVector=vector, baseRowId=9))
        assert isinstance(action, Add)
        assert action.partition_values == {"p": "1"}
        assert (action.size, action.modification_time, action.data_change) == (1, 2, True)
        assert action.deletion_vector is not None
        assert action.deletion_vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
        assert (action.stats, action.base_row_id) == ('{"numRecords":1}', 9)

    @pytest.mark.parametrize(
        ("raw", "kind"),
        [
            (b'{"remove":{"path":"x","dataChange":true}}', Remove),
            (b'{"cdc":{"path":"x","partitionValues":{},"size":1,"dataChange":false}}', AddCDCFile),
            (b'{"txn":{"appId":"a","version":1}}', Txn),
            (
                b'{"domainMetadata":{"domain":"d","configuration":"","removed":false}}',
                DomainMetadata,
            ),
            (b'{"commitInfo":{}}', CommitInfo),
            (b'{"sidecar":{}}', UnknownAction),
        ],
    )
    def test_every_kind_has_its_type(self, raw, kind):
        assert type(decode(raw)) is kind

    def test_feature_sets_are_told_from_absent_ones(self):
        absent = decode(b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}')
        empty = decode(
            b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
            b'"readerFeatures":[],"writerFeatures":["a","b"]}}'
        )
        assert isinstance(absent, Protocol)
        assert isinstance(empty, Protocol)
        assert (absent.reader_features, absent.writer_features) == (None, None)
        assert (empty.reader_features, empty.writer_features) == (frozenset(), {"a", "b"})

    @pytest.mark.parametrize(
        ("fields", "where"),
        [
            ({"size": "1"}, r"Expected `int`, got `str` - at `\$.size`"),
            ({"size": 1.5}, "size"),
            ({"size": True}, "size"),
            ({"size": 2**63}, "size"),
            ({"size": 10**30}, "size"),
            ({"modificationTime": -(2**63) - 1}, "modificationTime"),
            ({"path": None}, "path"),
            ({"dataChange": 1}, "dataChange"),
            ({"partitionValues": {"p": 1}}, "partitionValues"),
            ({"partitionValues": []}, "partitionValues"),
            ({"deletionVector": {"storageType": "u"}}, "deletionVector"),
        ],
    )
    def test_a_known_kind_of_another_shape_is_refused_with_its_place(self, fields, where):
        with pytest.raises(InvalidActionError, match=f"in action 'add': .*{where}"):
            decode(line(**fields))

    def test_a_missing_field_is_named(self):
        with pytest.raises(InvalidActionError, match="partitionValues"):
            decode(b'{"add":{"path":"x"}}')

    def test_versions_of_a_protocol_fit_an_int(self):
        with pytest.raises(InvalidActionError, match="minReaderVersion"):
            decode(b'{"protocol":{"minReaderVersion":2147483648,"minWriterVersion":2}}')

    def test_commit_info_may_hold_anything(self):
        raw = (
            b'{"commitInfo":{"timestamp":"soon","inCommitTimestamp":5,"operation":"WRITE",'
            b'"isBlindAppend":"true","tags":[1],"operationMetrics":{"a":1},"mine":{"b":2}}}'
        )
        info = decode(raw)
        assert isinstance(info, CommitInfo)
        assert (info.timestamp, info.is_blind_append, info.tags) == (None, None, None)
        assert (info.in_commit_timestamp, info.operation) == (5, "WRITE")
        assert info.operation_metrics == {"a": 1}
        assert info.raw == raw


class TestRefused:
    @pytest.mark.parametrize(
        ("raw", "why"),
        [
            (b"", "not valid JSON"),
            (b"nonsense", "not valid JSON"),
            (b"null", "exactly one key"),
            (b"[]", "exactly one key"),
            (b"{}", "exactly one key"),
            (b'{"add":{},"remove":{}}', "exactly one key"),
            (b'{"add":null}', "expected an object"),
            (b'{"add":[]}', "expected an object"),
            (b'{"commitInfo":5}', "expected an object"),
            (line() + line(), "not valid JSON"),
            (line()[:-1], "not valid JSON"),
            (b"\xef\xbb\xbf" + line(), "not valid JSON"),
            (spliced("NaN"), "not valid JSON"),
            (spliced("Infinity"), "not valid JSON"),
            (spliced("1e999"), "not valid JSON"),
            (spliced("-1e999"), "not valid JSON"),
            (spliced("01"), "not valid JSON"),
            (spliced("1" + "0" * 5000), "not valid JSON"),
            (spliced('"\ud800"'), "not valid JSON"),
            (spliced('"\\ud800"'), "not valid JSON"),
            (spliced('"\\udc00\\ud800"'), "not valid JSON"),
            (line().replace(b"x.parquet", b"\xff.parquet"), "not valid JSON"),
            (spliced('"a\nb"'), "not valid JSON"),
            (spliced('"a\rb"'), "not valid JSON"),
            (spliced("1\n2"), "not valid JSON"),
            (spliced("tru\ne"), "not valid JSON"),
            (spliced('"\0"'), "not valid JSON"),
            (spliced('"\\u0000"'), "NUL"),
            (spliced('{"a\\u0000":1}'), "NUL"),
            (line(path="a\0b"), "NUL"),
            (b'{"new\\u0000":1}', "NUL"),
            (b'{"add":{},"add":{}}', "'add' appears twice"),
            (spliced('{"a":1,"a":1}'), "'a' appears twice"),
            (spliced('{"a":1,"\\u0061":2}'), "'a' appears twice"),
            (spliced('[{"b":{"a":1,"c":2,"a":3}}]'), "'a' appears twice"),
            (line()[:-2] + b',"path":"y"}}', "'path' appears twice"),
            (spliced("[" * 64 + "]" * 64), "nested deeper than 64"),
            (spliced("[" * 100_000 + "]" * 100_000), "nested deeper than 64"),
            (spliced('{"a":' * 100_000 + "1" + "}" * 100_000), "nested deeper than 64"),
            (b'{"newKind":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 64"),
        ],
    )
    def test_what_readers_would_disagree_on(self, raw, why):
        with pytest.raises(InvalidActionError, match=why) as caught:
            decode(raw)
        assert len(str(caught.value)) < 500

    def test_depth_is_counted_in_levels_and_not_in_brackets(self):
        flat = "[" + ",".join(["[]"] * 200) + "]"
        assert decode(spliced(flat)).raw == spliced(flat)
        deep = "[" * 62 + "1" + "]" * 62
        assert decode(spliced(deep)).raw == spliced(deep)
        with pytest.raises(InvalidActionError, match="nested deeper than 64"):
            decode(spliced(f"[{deep}]"))

    def test_brackets_and_escapes_inside_a_string_are_no_structure(self):
        stats = json.dumps({"minValues": {"s": "\0[{" * 100}})
        action = decode(line(stats=stats))
        assert isinstance(action, Add)
        assert action.stats == stats

    @given(st.binary() | st.text().map(str.encode))
    def test_no_line_is_any_other_error(self, raw):
        action = decoded(raw)
        assert action is None or decoded(codec.encode(action)) == action

    @given(st.text('{}[]":,0e.-\\u\n aAd', max_size=12), st.integers(0, len(line())))
    def test_no_damage_to_a_line_is_any_other_error(self, damage, at):
        action = decoded(line()[:at] + damage.encode() + line()[at:])
        assert action is None or decoded(codec.encode(action)) == action
