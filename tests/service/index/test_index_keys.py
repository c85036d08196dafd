"""Any text a writer can send is an index key."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate_service.index.rows.keys import MAX_KEY_BYTES, key

texts = (
    st.text() | st.text().map(lambda t: "sha256:" + t) | st.integers(1000, 1100).map("ü".__mul__)
)


@given(texts)
def test_a_key_is_what_postgres_can_index(text):
    assert len(key(text).encode()) <= MAX_KEY_BYTES
    assert "\0" not in key(text)


@given(texts, texts)
def test_different_texts_have_different_keys(one, other):
    assert (key(one) == key(other)) is (one == other)


def test_ordinary_text_is_its_own_key():
    for text in ("", "day=1/part-0.parquet", "x" * MAX_KEY_BYTES, "größer"):
        assert key(text) == text


def test_the_longest_key_fits_and_no_longer_one():
    assert key("ü" * (MAX_KEY_BYTES // 2)) == "ü" * (MAX_KEY_BYTES // 2)
    assert key("ü" * (MAX_KEY_BYTES // 2) + "x").startswith("sha256:")


def test_a_key_cannot_be_imitated():
    digest = key("nul\0")
    assert digest.startswith("sha256:")
    assert key(digest) != digest
