"""Commit files as values."""

import json

import pytest

from tests.builders.actions import (
    add,
    commit_info,
    domain,
    metadata,
    protocol,
    remove,
    txn,
    unknown,
)
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.replay.commits import (
    MAX_TIMESTAMP,
    UnreadableCommit,
    body_digest,
    parse_commit,
    summarize,
    table_id,
    timestamp_of,
)
from tidegate_protocol.replay.foreign import parse_foreign_commit


class TestParsing:
    def test_the_actions_in_order(self):
        actions = (commit_info(operation="WRITE"), add("a"), unknown(), remove("b"))
        assert parse_commit(encode_lines(actions)) == actions

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"", "the file is empty"),
            (b"\n \n", "the file is empty"),
            (b'{"add":{"path":"a"', "line 1"),
            (add("a").raw + b"\nnot json\n", "line 2"),
            (b'{"add":{}}', "line 1: in action 'add'"),
        ],
    )
    def test_what_is_no_commit(self, content, why):
        with pytest.raises(UnreadableCommit, match=why):
            parse_commit(content)

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (metadata(), metadata(name="b")),
            (protocol(), protocol(1, 3)),
            (commit_info(operation="A"), commit_info(operation="B")),
        ],
    )
    def test_the_first_of_a_kind_that_a_commit_has_once(self, first, second):
        content = encode_lines([add(), first, second, txn()])
        assert parse_commit(content) == (add(), first, txn())
        with pytest.raises(UnreadableCommit, match=r"2 \w+ actions; expected at most one"):
            parse_commit(content, strict=True)

    def test_a_line_without_an_action_is_a_commit_without_one(self):
        assert parse_commit(b"{}\n") == ()

    def test_the_log_of_a_catalog_managed_table_is_read_strictly(self):
        assert parse_foreign_commit(b"{}\n") == ()
        with pytest.raises(UnreadableCommit, match="line 1"):
            parse_foreign_commit(b"{}\n", catalog_managed=True)


class TestTimestamp:
    @pytest.mark.parametrize(
        ("actions", "expected"),
        [
            ([commit_info(inCommitTimestamp=5, timestamp=6)], 5),
            ([add(), commit_info(timestamp=6)], 6),
            ([commit_info(timestamp=0)], 0),
            ([commit_info()], 7),
            ([add()], 7),
        ],
    )
    def test_its_own_time_comes_first(self, actions, expected):
        assert timestamp_of(3, actions, fallback=7) == expected

    @pytest.mark.parametrize(
        ("timestamp", "expected"),
        [
            (-1, 7),
            (MAX_TIMESTAMP, MAX_TIMESTAMP),
            (MAX_TIMESTAMP + 3, MAX_TIMESTAMP + 3),
            (MAX_TIMESTAMP + 4, 7),
        ],
    )
    def test_there_is_room_after_each_version(self, timestamp, expected):
        assert timestamp_of(3, [commit_info(timestamp=timestamp)], fallback=7) == expected


class TestDigest:
    @pytest.mark.parametrize(
        ("marker", "digest"),
        [
            ({"bodyDigest": "abc"}, "abc"),
            ({"bodyDigest": 5}, None),
            ({}, None),
            ("abc", None),
            (None, None),
        ],
    )
    def test_it_is_in_our_marker_or_not_at_all(self, marker, digest):
        assert body_digest(commit_info(tidegate=marker)) == digest
        assert body_digest(commit_info()) is None


class TestTableId:
    @pytest.mark.parametrize(
        ("marker", "found"),
        [
            ({"bodyDigest": "abc", "tableId": "t"}, "t"),
            ({"bodyDigest": "abc"}, None),
            ({"tableId": 5}, None),
            ("abc", None),
        ],
    )
    def test_it_is_in_our_marker_or_not_at_all(self, marker, found):
        assert table_id(commit_info(tidegate=marker)) == found
        assert table_id(commit_info()) is None


class TestSummary:
    def test_every_action_goes_where_the_rules_look_for_it(self):
        info = commit_info(operation="MERGE", isBlindAppend=True, timestamp=9)
        parts = (add("a"), remove("b"), metadata(), protocol(), txn(), domain(), unknown())
        winner = summarize(4, (info, *parts, add("c")), timestamp=0)
        assert (winner.version, winner.timestamp, winner.operation) == (4, 0, "MERGE")
        assert winner.is_blind_append
        assert winner.adds == (parts[0], add("c"))
        assert winner.removes == (parts[1],)
        assert (winner.metadata, winner.protocol) == parts[2:4]
        assert (winner.txns, winner.domains, winner.unknown) == tuple((p,) for p in parts[4:])
        assert winner.commit_info == info

    def test_a_commit_without_commit_info(self):
        winner = summarize(1, (add(),), timestamp=8)
        assert (winner.timestamp, winner.operation, winner.is_blind_append) == (8, None, False)
        assert (winner.metadata, winner.protocol, winner.commit_info) == (None, None, None)

    @pytest.mark.parametrize("claim", [False, None])
    def test_only_a_claim_is_a_claim(self, claim):
        info = commit_info(**json.loads(json.dumps({"isBlindAppend": claim})))
        assert not summarize(1, (info,), timestamp=0).is_blind_append
