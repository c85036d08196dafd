"""Commit files of any size, read as they come: what is held of them, and what is refused."""

import gc
import hashlib
import io
import json
import os
from functools import partial
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.storage.stepping import done
from tidegate_protocol.log.codec import InvalidActionError, decode, encode
from tidegate_protocol.replay.commits import UnreadableCommit, parse_commit
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.log.files.log_file import (
    LARGE_BYTES,
    FileMemory,
    OversizedFile,
    SpooledFile,
    read_file,
)
from tidegate_service.core.observe import correlation
from tidegate_service.core.observe.correlation import Correlation
from tidegate_service.index.rows.records import compressed
from tidegate_service.index.rows.stored_content import StoredContent

MIB = 1024 * 1024


def line(number: int) -> bytes:
    add = {"path": f"a/{number}", "partitionValues": {}, "size": 1, "modificationTime": 1}
    return json.dumps({"add": {**add, "dataChange": True}}).encode()


def read(content: bytes, *, memory: FileMemory | None = None, **bounds: int):
    bounds = {"max_bytes": 64 * MIB, "max_actions": 1_000_000} | bounds
    return done(
        read_file(io.BytesIO(content), len(content), memory=memory or FileMemory(), **bounds)
    )


def spooled(content: bytes, *, at: int = 1000, **bounds: int) -> SpooledFile:
    """A file of this content that came in pieces of so many bytes."""
    found = SpooledFile(FileMemory(), **{"max_actions": 1_000_000, **bounds})
    for start in range(0, len(content), at):
        found.add(content[start : start + at])
    return found


def stored(content: bytes) -> StoredContent:
    return StoredContent(compressed(content))


def reading(share: str | None) -> None:
    """From here on, what is read is for a request in whose name this is."""
    correlation.enter(Correlation(id="r", share=share))


def fill(memory: FileMemory, held: list[object]) -> NoReturn:
    """Hold files of five MiB until one is refused."""
    while True:
        held.append(read(os.urandom(LARGE_BYTES + MIB), memory=memory))


class TestReading:
    @pytest.mark.parametrize("size", [0, 1, LARGE_BYTES])
    def test_a_small_one_is_held_as_it_is(self, size):
        content = b"\n" * size
        assert read(content) == content

    def test_a_larger_one_is_held_compressed(self):
        content = b"".join(line(number) + b"\n" for number in range(60_000))
        assert len(content) > LARGE_BYTES
        memory = FileMemory()
        found = read(content, memory=memory)
        assert isinstance(found, SpooledFile)
        assert b"".join(found.pieces()) == content
        assert len(found) == len(content)
        assert found.sha256 == hashlib.sha256(content).hexdigest()
        assert memory.taken == found.stored_bytes < len(content) // 10
        paths = [action.path for action in found.actions()]
        assert paths == [f"a/{number}" for number in range(60_000)]

    def test_one_beyond_the_bound_is_not_read(self):
        class Unread(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                raise AssertionError("nothing of it is of use")

        found = done(
            read_file(Unread(), MIB + 1, max_bytes=MIB, max_actions=1, memory=FileMemory())
        )
        assert isinstance(found, OversizedFile)
        assert len(found) == MIB + 1
        for ask in (found.actions, found.pieces):
            with pytest.raises(
                UnreadableCommit,
                match=r"has 1048577 bytes, and at most 1048576 .*max_log_file_bytes",
            ):
                ask()

    def test_one_that_grows_while_it_is_read_is_beyond_it_too(self):
        content = b"\n" * (LARGE_BYTES + MIB)
        memory = FileMemory()
        found = done(
            read_file(io.BytesIO(content), 10, max_bytes=LARGE_BYTES, max_actions=1, memory=memory)
        )
        assert isinstance(found, OversizedFile)
        assert memory.taken == 0

    def test_one_that_stays_large_when_it_is_compressed(self):
        found = read(os.urandom(LARGE_BYTES + MIB), max_stored_bytes=LARGE_BYTES)
        assert isinstance(found, OversizedFile)
        assert "compressed" in found.why


class TestRoom:
    def test_there_is_no_more_than_there_is(self):
        content = os.urandom(LARGE_BYTES + MIB)
        memory = FileMemory(LARGE_BYTES + 3 * MIB)
        held = read(content, memory=memory)
        assert isinstance(held, SpooledFile)
        taken = memory.taken
        with pytest.raises(StorageUnavailable, match="large files of logs hold: there are"):
            read(content, memory=memory)
        gc.collect()
        assert memory.taken == taken, "who was refused holds nothing"
        del held
        gc.collect()
        assert memory.taken == 0
        assert isinstance(read(content, memory=memory), SpooledFile)

    def test_one_caller_leaves_room_to_others(self):
        memory = FileMemory(8 * LARGE_BYTES)
        held = []
        reading("flood")
        with pytest.raises(StorageUnavailable, match="more than 3 times what is left"):
            fill(memory, held)
        assert len(held) == 4
        reading("other")
        held.append(read(os.urandom(LARGE_BYTES + MIB), memory=memory))
        del held
        gc.collect()
        assert memory.taken == 0


class TestActions:
    @settings(max_examples=100, deadline=None)
    @given(
        gaps=st.lists(st.sampled_from([b"\n", b"\n\n", b"\r\n", b" \n", b"\n \n"]), max_size=150),
        ended=st.booleans(),
        at=st.integers(1, 400),
    )
    def test_they_are_those_of_the_lines_however_they_come(self, gaps, ended, at):
        content = b"".join(line(number) + gap for number, gap in enumerate(gaps))
        content = content + (b"" if ended else line(len(gaps)))
        found = spooled(content, at=at).actions()
        expected = [decode(each) for each in content.split(b"\n") if each.strip()]
        assert [action.raw.strip() for action in found] == [e.raw.strip() for e in expected]

    @pytest.mark.parametrize("read", [spooled, stored])
    def test_lines_of_other_writers(self, read):
        content = b'{}\n%s,"remove":null}\n%s' % (line(1)[:-1], line(2))
        assert [action.path for action in read(content).actions()] == ["a/1", "a/2"]
        for each in (content, line(1) + b"\n{}"):
            with pytest.raises(InvalidActionError, match="exactly one key"):
                read(each).actions(strict=True)

    @pytest.mark.parametrize(
        "odd",
        [
            b'{"x":null}',
            b'{"commitInfo":{"inCommitTimestamp":"7"}}',
            b'{"commitInfo":{"inCommitTimestamp":7.0}}',
            b'{"x":1}',
        ],
    )
    def test_among_many_lines_they_are_what_they_are_alone(self, odd):
        compact = [line(number).replace(b" ", b"") for number in range(100)]
        content = b"\n".join([odd, *compact])
        actions = parse_commit(content)
        for read in (partial(spooled, at=len(content)), stored):
            found = parse_commit(read(content))
            assert [encode(action) for action in found] == [encode(each) for each in actions]
            assert len(read(content).actions(strict=True)) == 101

    def test_a_file_of_white_space_is_no_commit(self):
        assert parse_commit(spooled(b" \n{}\n")) == ()
        with pytest.raises(UnreadableCommit, match="empty"):
            parse_commit(spooled(b" \n" * 1000))

    def test_more_than_are_read(self):
        content = b"".join(line(number) + b"\n" for number in range(101))
        assert len(spooled(content, max_actions=101).actions()) == 101
        with pytest.raises(UnreadableCommit, match="more than 100 actions"):
            spooled(content, max_actions=100).actions()

    @pytest.mark.parametrize("ended", [b"", b"\n"])
    def test_a_line_that_is_none_is_named(self, ended):
        content = b"\n".join([line(1), b"", line(2), b'{"add":', line(3)]) + ended
        with pytest.raises(UnreadableCommit, match=r"^line 4: "):
            parse_commit(spooled(content, at=7))

    def test_a_line_that_does_not_end(self):
        assert len(spooled(line(1) + b"\n" + b" " * 900, max_line_bytes=1000).actions()) == 1
        with pytest.raises(UnreadableCommit, match="a line has more than 1000 bytes"):
            spooled(line(1) + b"\n" + b" " * 5000, at=100, max_line_bytes=1000).actions()
