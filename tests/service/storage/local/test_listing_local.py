"""A listing of a local folder is in the order of the names' bytes."""

import os

import pytest

from tidegate_service.storage.local.listing import listed


@pytest.fixture
def opened(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    yield folder
    os.close(folder)


def test_names_that_are_no_text_are_in_the_order_of_their_bytes(tmp_path, opened):
    names = [b"a", b"\x7f", b"\x80", "\u00e9".encode(), "\uffff".encode(), b"\xf0\x9f", b"\xff"]
    for name in names:
        (tmp_path / os.fsdecode(name)).touch()
    batches = list(listed(opened, who=None, after="A", at_once=1, names_at_once=1))
    shown = [entry.name for batch in batches for entry in batch or ()]
    assert shown == [os.fsdecode(name) for name in names[:-1]]
