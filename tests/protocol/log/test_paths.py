"""Paths of file actions: two spellings of one file, and what no path may name."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log.paths import (
    MAX_PATH_BYTES,
    InvalidPath,
    check,
    check_anywhere,
    decode,
    encode,
    identity,
    is_absolute,
)


def refusal(path: str) -> str | None:
    try:
        check(path)
    except InvalidPath as error:
        return str(error)
    return None


class TestDecode:
    @pytest.mark.parametrize(
        ("path", "plain"),
        [
            ("part-0.parquet", "part-0.parquet"),
            ("p=a%20b/x.parquet", "p=a b/x.parquet"),
            ("p=a%252Fb/x.parquet", "p=a%2Fb/x.parquet"),
            ("p=%C3%A4/x", "p=ä/x"),
            ("p=ä/x", "p=ä/x"),
            ("100%", "100%"),
            ("a+b", "a+b"),
        ],
    )
    def test_escapes_are_decoded_once(self, path, plain):
        assert decode(path) == plain

    def test_every_spelling_of_a_file_is_the_same_file(self):
        assert decode("a%7eb") == decode("a%7Eb") == decode("a~b") == decode("%61~b")

    def test_bytes_that_are_no_text_do_not_make_two_files_one(self):
        assert decode("a%FF") != decode("a%FE")

    @given(st.text())
    def test_encoding_is_undone(self, plain):
        assert decode(encode(plain)) == plain

    @given(st.text())
    def test_no_path_is_an_error(self, path):
        assert isinstance(decode(path), str)


class TestIdentity:
    """Delta qualifies absolute paths by their file system before it compares them."""

    @pytest.mark.parametrize(
        "path", ["/x/a%20b", "file:/x/a b", "file:///x/a%20b", "FILE:/x/a%20b", "/x/%61%20b"]
    )
    def test_the_spellings_of_an_absolute_path_are_one_file(self, path):
        assert identity(path) == "/x/a b"

    def test_one_store_goes_by_several_names(self):
        assert identity("s3a://b/x") == identity("s3n://b/x") == identity("s3://b/x")

    @pytest.mark.parametrize("path", ["x/a", "a//b", "file://host/x", "gs://b/x", "c:/x", ""])
    def test_others_are_what_they_say(self, path):
        assert identity(path) == path

    def test_a_relative_path_is_never_an_absolute_one(self):
        assert identity("x") != identity("/x")


class TestCheck:
    @pytest.mark.parametrize(
        "path",
        [
            "part-00000-3935a07c.c000.snappy.parquet",
            "month=5/day=__HIVE_DEFAULT_PARTITION__/part-0.parquet",
            "ts=2020-01-01%2000%253A00/x.parquet",
            "p=a%252F..%252Fb/x.parquet",
            "p=ä%E2%80%A8%C2%85/x.parquet",
            "p=%E2%80%AEb/x.parquet",
            "..x/...",
            "a/_delta_log/x",
        ],
    )
    def test_a_file_inside_the_table_passes(self, path):
        check(path)

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("", "is empty"),
            ("a" * (MAX_PATH_BYTES + 1), "is longer than"),
            ("ä" * (MAX_PATH_BYTES // 2 + 1), "is longer than"),
            ("/etc/passwd", "is absolute"),
            ("//host/share", "is absolute"),
            ("%2Fetc/passwd", "is absolute"),
            ("file:/tmp/x", "is absolute"),
            ("s3://bucket/x", "is absolute"),
            ("C:%5Cx", "is absolute"),
            ("s3%3A//bucket/x", "is absolute"),
            ("..", "'..' segment"),
            ("../x", "'..' segment"),
            ("a/../../x", "'..' segment"),
            ("a/%2E%2e/x", "'..' segment"),
            ("a/..%2Fx", "'..' segment"),
            ("./x", "'..' segment"),
            ("a//x", "'..' segment"),
            ("a/", "'..' segment"),
            ("_delta_log/00000000000000000000.json", "lies under _delta_log"),
            ("%5Fdelta_log/x", "lies under _delta_log"),
            ("_Delta_LOG/x", "lies under _delta_log"),
            ("_delta_log%2Fx", "lies under _delta_log"),
            ("_delta_log", "lies under _delta_log"),
            ("a\\b", "must be percent-encoded"),
            ("a%5Cb", "contains a backslash"),
            ("a%00b", "contains a control character"),
            ("a%0Ab", "contains a control character"),
            ("a%7Fb", "contains a control character"),
            ("a\0b", "must be percent-encoded"),
            ("a\nb", "must be percent-encoded"),
            ("a\n", "must be percent-encoded"),
            ("a b", "must be percent-encoded"),
            ("a?b", "must be percent-encoded"),
            ("a#b", "must be percent-encoded"),
            ("a[b", "must be percent-encoded"),
            ("a%zz", "must be percent-encoded"),
            ("a%2", "must be percent-encoded"),
            ("a\u2028b", "must be percent-encoded"),
            ("a\u0085b", "must be percent-encoded"),
            ("a\ud800b", "must be percent-encoded"),
            ("a\u202eb", "must be percent-encoded"),
            ("a\u200bb", "must be percent-encoded"),
            ("a\ufeffb", "must be percent-encoded"),
            ("a%FFb", "are not UTF-8"),
            ("a%ED%A0%80b", "are not UTF-8"),
        ],
    )
    def test_anything_else_is_refused_with_its_reason(self, path, why):
        with pytest.raises(InvalidPath, match=why):
            check(path)


class TestAbsolutePaths:
    @pytest.mark.parametrize(
        "path",
        [
            "a/b",
            "/a/b%20c",
            "file:/a",
            "file:///a/p=1%252F2/x",
            "s3a://bucket/a",
            "abfss://c@a.b/x",
        ],
    )
    def test_those_of_a_store_pass(self, path):
        check_anywhere(path)
        assert is_absolute(path) == (path != "a/b")

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("/" + "a" * MAX_PATH_BYTES, "is longer than"),
            ("%2Fetc/passwd", "is absolute"),
            ("file:tmp/x", "is absolute"),
            ("FILE:///x", "is absolute"),
            ("s3://buck%65t/x", "is absolute"),
            ("//host/share", "is absolute"),
            ("file:////x", "is absolute"),
            ("/a/../b", "'..' segment"),
            ("s3://bucket/a//b", "'..' segment"),
            ("s3://bucket/", "is empty"),
            ("/a b", "must be percent-encoded"),
            ("file:///t/_delta_log/0.json", "lies under _delta_log"),
            ("/t/%5fDELTA_log%2Fx", "lies under _delta_log"),
        ],
    )
    def test_others_are_refused(self, path, why):
        with pytest.raises(InvalidPath, match=why):
            check_anywhere(path)

    @given(st.text())
    def test_what_passes_stays_inside_the_table(self, text):
        for path in (text, quote(text, safe="", errors="replace"), encode(text)):
            if refusal(path) is not None:
                continue
            segments = decode(path).split("/")
            assert not {"", ".", ".."} & set(segments)
            assert segments[0].lower() != "_delta_log"
            assert not any(character < " " for character in decode(path))

    @given(st.text(st.characters()))
    def test_a_refusal_stays_on_one_line(self, path):
        message = refusal(path)
        assert message is None or message.isprintable()

    @given(
        st.text(
            st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\\/\x7f"),
            max_size=80,
        )
    )
    def test_an_encoded_name_passes(self, name):
        check(encode(f"p={name}/part-0.parquet"))
