"""Lines that others write: what Delta's kernel reads is read, what it refuses is refused."""

import json

import pytest

from tidegate_protocol.base import strict_json
from tidegate_protocol.log import codec
from tidegate_protocol.log.codec import InvalidActionError
from tidegate_protocol.log.lines import decode_line, decode_lines

ADD = (
    '{"add":{"path":"a","partitionValues":{"p":"x"},"size":1,"modificationTime":2,'
    '"dataChange":true}}'
)
TXN = '{"txn":{"appId":"a","version":1}}'
REMOVE = '{"remove":{"path":"b","dataChange":true}}'
METADATA = '{"metaData":{"id":"i","configuration":{},"partitionColumns":[]}}'
INFO = '{"commitInfo":{}}'


def raw(line: str | bytes) -> list[str]:
    """The bytes of each action of a line; they are what strict readers read as this action."""
    line = line if isinstance(line, bytes) else line.encode()
    actions = decode_line(line)
    for action in actions:
        assert codec.decode(action.raw) == action
    return [action.raw.decode() for action in actions]


def beside(line: str, more: str) -> str:
    return f"{line[:-1]},{more}}}"


class TestNulls:
    @pytest.mark.parametrize(
        "line", ["{}", '{"add":null}', '{"add":null,"x":null}', '{"x": null }']
    )
    def test_a_line_without_an_action(self, line):
        assert raw(line) == []

    def test_a_null_beside_an_action(self):
        assert raw(beside(ADD, '"remove":null,"commitInfo":null')) == [ADD]
        assert raw(f'{{"remove":null,{ADD[1:]}') == [ADD]

    def test_a_null_in_the_place_of_a_field(self):
        nulls = '"stats":null,"tags":null,"deletionVector":null,"x":null'
        assert raw(f"{ADD[:-2]},{nulls}}}}}") == [f"{ADD[:-2]},{nulls}}}}}"], "as ever"
        assert raw('{"metaData":{"id":"i","format":null,"partitionColumns":null,"x":null}}') == [
            '{"metaData":{"id":"i","x":null}}'
        ]

    def test_a_null_in_a_map_of_texts(self):
        line = METADATA.replace("{}", '{"a":null,"b":"1"}')
        assert raw(line) == [METADATA.replace("{}", '{"b":"1"}')]
        options = '{"metaData":{"id":"i","format":{"provider":"parquet","options":{"a":null}}}}'
        assert raw(options) == [options.replace('"a":null', "")]

    def test_a_null_is_a_partition_value(self):
        line = ADD.replace('"x"', "null")
        assert raw(line) == [line]
        assert raw(beside(line, '"remove":null')) == [line]

    @pytest.mark.parametrize("field", ["path", "size", "dataChange", "partitionValues"])
    def test_a_field_that_has_to_be_there(self, field):
        body = json.loads(ADD)["add"] | {field: None}
        with pytest.raises(InvalidActionError, match=f"'add': .*required field `{field}`"):
            raw(json.dumps({"add": body}))


class TestSeveral:
    def test_actions_on_one_line(self):
        line = beside(TXN, f'{INFO[1:-1]},"x":{{"y":1.50}}')
        assert raw(line) == [TXN, INFO, '{"x":{"y":1.50}}']

    def test_an_add_hides_a_remove(self):
        assert raw(beside(ADD, REMOVE[1:-1])) == [ADD]
        assert raw(beside(REMOVE, ADD[1:-1])) == [ADD]

    @pytest.mark.parametrize("between", ["", " ", "\r", "\t "])
    def test_objects_on_one_line(self, between):
        assert raw(ADD + between + TXN) == [ADD, TXN]

    @pytest.mark.parametrize(
        "line",
        [
            ADD.replace('"x"', '"x","p":null'),
            METADATA.replace("{}", '{"a":"1","a":null}'),
            beside(TXN, '"txn":null'),
        ],
    )
    def test_a_null_behind_another_value_of_its_key(self, line):
        """deltalake reads the null, and DuckDB the value."""
        with pytest.raises(InvalidActionError, match=r"in action .* null after another value"):
            raw(line)

    def test_the_last_value_of_a_key(self):
        assert raw(ADD.replace('"size"', '"path":"c","size"')) == [
            ADD.replace('"path":"a"', '"path":"c"')
        ]
        assert raw(ADD.replace('"x"', '"x","p":"y"')) == [ADD.replace('"x"', '"y"')]
        assert raw(ADD.replace('"x"', 'null,"p":"y"')) == [ADD.replace('"x"', '"y"')]
        assert raw(beside(TXN, TXN[1:-1].replace('"a"', '"b"'))) == [TXN.replace('"a"', '"b"')]


class TestTypes:
    @pytest.mark.parametrize(
        ("number", "found"),
        [
            ("0.0", "0"),
            ("-0.0", "0"),
            ("1.7E12", "1700000000000"),
            ("1.5", "1"),
            ('"12"', "12"),
            ("9223372036854774784.0", "9223372036854774784"),
        ],
    )
    def test_numbers(self, number, found):
        line = ADD.replace(":2,", f":{number},")
        assert raw(line) == [ADD.replace(":2,", f":{found},")]

    def test_numbers_of_other_actions(self):
        assert raw(TXN.replace("1", "1.0")) == [TXN]
        line = '{"protocol":{"minReaderVersion":1.0,"minWriterVersion":"2"}}'
        assert raw(line) == ['{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}']
        vector = '"deletionVector":{"storageType":"u","pathOrInlineDv":"p","sizeInBytes":1'
        line = f'{ADD[:-2]},{vector}.0,"cardinality":1,"offset":null}}}}}}'
        assert raw(line) == [f'{ADD[:-2]},{vector},"cardinality":1}}}}}}']

    @pytest.mark.parametrize(
        "number", ["1e30", "9223372036854775808", "1e999", "NaN", '"1.0"', "true", "[]"]
    )
    def test_what_is_no_number(self, number):
        with pytest.raises(InvalidActionError):
            raw(ADD.replace(":2,", f":{number},"))

    @pytest.mark.parametrize(
        ("value", "found"),
        [("5", "5"), ("1.50", "1.50"), ("1E2", "1E2"), ("-0", "-0"), ("true", "true")],
    )
    def test_texts(self, value, found):
        assert raw(ADD.replace('"x"', value)) == [ADD.replace('"x"', f'"{found}"')]
        assert raw(METADATA.replace("{}", f'{{"a":{value}}}')) == [
            METADATA.replace("{}", f'{{"a":"{found}"}}')
        ]

    def test_the_items_of_lists(self):
        line = '{"protocol":{"minReaderVersion":1,"minWriterVersion":7.0,"writerFeatures":["a",5]}}'
        assert raw(line) == [line.replace("7.0", "7").replace(",5]", ',"5"]')]

    def test_control_characters_in_texts(self):
        assert raw(ADD.replace('"x"', '"x\ty"')) == [ADD.replace('"x"', r'"x\ty"')]

    def test_fields_that_nobody_knows(self):
        more = '"x":{"y":[1.50,1E2,null,true,"\u00e9"],"z":null}'
        assert raw(f"{ADD[:-2]},{more}}}}}".replace(":2,", ":2.0,")) == [f"{ADD[:-2]},{more}}}}}"]

    @pytest.mark.parametrize("value", ["1", '"true"', "0.0"])
    def test_what_is_no_boolean(self, value):
        with pytest.raises(InvalidActionError, match="dataChange"):
            raw(ADD.replace("true", value))

    @pytest.mark.parametrize("value", [r'"\u0000"', r'"\ud800"', '{"a":1}', "[]", "NaN"])
    def test_what_is_no_text(self, value):
        with pytest.raises(InvalidActionError):
            raw(ADD.replace('"x"', value))


class TestCommitInfo:
    @pytest.mark.parametrize("value", ["[]", "5", '"x"', "true", "1e999", "NaN"])
    def test_what_is_no_object(self, value):
        assert raw(f'{{"commitInfo":{value}}}') == [INFO]

    @pytest.mark.parametrize(
        ("fields", "found"),
        [
            (r'"userMetadata":"a\u0000b"', '"userMetadata":"a\ufffdb"'),
            ('"userMetadata":"a\0b"', '"userMetadata":"a\ufffdb"'),
            (r'"userMetadata":"a\ud800b"', '"userMetadata":"a\ufffdb"'),
            (r'"a\u0000":1', '"a\ufffd":1'),
            ('"operation":"A","operation":"B"', '"operation":"B"'),
            ('"operationMetrics":{"a":NaN,"b":[1e999,-Infinity]}',) * 2,
            ('"timestamp":99999999999999999999',) * 2,
        ],
    )
    def test_what_cannot_be_stored(self, fields, found):
        found = found.replace("NaN", "null").replace("1e999", "null").replace("-Infinity", "null")
        assert raw(f'{{"commitInfo":{{{fields}}}}}') == [f'{{"commitInfo":{{{found}}}}}']

    def test_bytes_that_are_no_text(self):
        assert raw(b'{"commitInfo":{"userMetadata":"a\xffb"}}') == [
            '{"commitInfo":{"userMetadata":"a\ufffdb"}}'
        ]

    @pytest.mark.parametrize("depth", [62, 63, 64, 300])
    def test_what_is_too_deep_is_null(self, depth):
        def lists(number: int, innermost: str = "") -> str:
            return "[" * number + innermost + "]" * number

        (line,) = raw(f'{{"commitInfo":{{"operation":"A","x":{lists(depth)}}}}}')
        kept = lists(62) if depth == 62 else lists(62, "null")
        assert line == f'{{"commitInfo":{{"operation":"A","x":{kept}}}}}'

    def test_fields_of_other_types(self):
        for more in ("", r',"x":"\u0000"', ',"inCommitTimestamp":null'):
            line = f'{{"commitInfo":{{"operation":5,"timestamp":"soon","txnId":"a"{more}}}}}'
            (info,) = decode_line(line.encode())
            assert (info.operation, info.timestamp, info.txn_id) == (None, None, "a")

    def test_more_than_is_decoded(self):
        braces = r"\u007b" * (strict_json.MAX_CONTAINERS + 1)
        assert raw(f'{{"commitInfo":{{"userMetadata":"{braces}","x":NaN}}}}') == [INFO]

    def test_nulls_among_parameters(self):
        fields = '"operationParameters":{"a":null},"tags":{"b":null},"engineInfo":"x"'
        line = rf'{{"commitInfo":{{{fields},"txnId":null,"x":NaN}}}}'
        assert raw(line) == [line.replace("NaN", "null")]

    @pytest.mark.parametrize("time", ["1.7E12", "1700000000000.0", '"1700000000000"'])
    def test_the_in_commit_timestamp_is_a_number_as_any(self, time):
        for more in ("", ',"x":NaN'):
            line = f'{{"commitInfo":{{"inCommitTimestamp":{time},"operation":"A"{more}}}}}'
            (info,) = decode_line(line.encode())
            assert (info.in_commit_timestamp, info.operation) == (1_700_000_000_000, "A")

    @pytest.mark.parametrize("time", ["true", '"soon"', "1e30", "null", "[]"])
    def test_what_is_no_in_commit_timestamp(self, time):
        line = f'{{"commitInfo": {{"inCommitTimestamp": {time}, "operation": "A"}}}}'
        (info,) = decode_line(line.encode())
        assert (info.in_commit_timestamp, info.operation, info.raw) == (None, "A", line.encode())


class TestRefused:
    @pytest.mark.parametrize(
        "line",
        [
            "null",
            "[]",
            "5",
            '"x"',
            f"[{ADD}]",
            f"{ADD}5",
            f"{ADD},{TXN}",
            ADD[:-1],
            "\ufeff" + ADD,
            '{"add":[]}',
            '{"remove":{}}',
            '{"cdc":5}',
            "{'txn':1}",
            f"{TXN}//",
            '{"x":NaN}',
        ],
    )
    def test_what_is_no_line_of_a_log(self, line):
        with pytest.raises(InvalidActionError):
            raw(line)

    def test_more_than_is_decoded(self):
        for many in ("[]," * strict_json.MAX_CONTAINERS, "1," * strict_json.MAX_VALUES):
            with pytest.raises(InvalidActionError, match="more than"):
                raw(beside(TXN, f'"x":[{many}1],"y":null'))

    def test_more_objects_than_are_decoded(self):
        with pytest.raises(InvalidActionError):
            raw("{}" * (strict_json.MAX_CONTAINERS + 1))

    def test_a_commit_info_that_no_reader_of_json_takes(self):
        with pytest.raises(InvalidActionError, match="nested deeper"):
            raw('{"commitInfo":{"x":' + "[" * 5000 + "]" * 5000 + "}}")


class TestLines:
    def test_a_commit_file_is_read_back(self):
        actions = [codec.decode(TXN.encode()), codec.decode(b'{"new":"a\xe2\x80\xa8b"}')]
        content = codec.encode_lines(actions)
        assert content.count(b"\n") == 2
        assert list(decode_lines(content)) == actions

    def test_blank_lines_and_windows_line_ends_are_passed_over(self):
        content = f'\n{TXN}\r\n \n{{}}\n{{"new":1}}'.encode()
        assert [action.raw for action in decode_lines(content)] == [TXN.encode(), b'{"new":1}']

    def test_an_error_names_its_line(self):
        with pytest.raises(InvalidActionError, match="line 3: in action 'txn'"):
            list(decode_lines(b'{"new":1}\n\n{"txn":{}}\n'))

    def test_an_action_does_not_go_over_lines(self):
        with pytest.raises(InvalidActionError, match="line 1"):
            list(decode_lines(b'{"new":\n1}'))

    @pytest.mark.parametrize("line", ["{}", beside(ADD, '"remove":null'), ADD.replace("2", "2.0")])
    def test_what_lands_is_read_strictly(self, line):
        content = f"{TXN}\n{line}".encode()
        assert len(list(decode_lines(content))) == (1 if line == "{}" else 2)
        with pytest.raises(InvalidActionError, match="line 2"):
            list(decode_lines(content, strict=True))
