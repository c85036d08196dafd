"""A listing of a local folder: in order, and in little memory, however many files there are."""

import os

import pytest

from tests.traced import traced
from tidegate_service.core.sharing.spools import ROOM
from tidegate_service.storage.local.listing import listed


@pytest.fixture
def opened(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    yield folder
    os.close(folder)


def count_in_order(folder):
    """How many are shown, but for the last batch, which is returned."""
    shown = 0
    opened = os.open(folder, os.O_RDONLY)
    for batch in listed(opened, who=None, after=f"{0:0240}", at_once=100, names_at_once=256):
        for entry in batch or ():
            shown += 1
            assert entry.name == f"{shown:0240}"
    assert ROOM.used == 0
    return shown


@pytest.mark.slow
def test_of_many_names_few_are_in_memory(tmp_path):
    for number in range(8_000):
        (tmp_path / f"{number:0240}").touch()
    shown, peak = traced(count_in_order, tmp_path)
    assert shown == 7_900
    # All names together take 2,400,000 bytes.
    assert peak < 1_300_000


def test_names_that_are_passed_over_are_read_in_steps_too(tmp_path, opened):
    for number in range(100):
        (tmp_path / f"{number:03}").touch()
    steps = list(listed(opened, who=None, after="098", names_at_once=10))
    assert steps == [None] * 9


def test_names_that_are_no_text_are_in_the_order_of_their_bytes(tmp_path, opened):
    names = [b"a", b"\x7f", b"\x80", "\u00e9".encode(), "\uffff".encode(), b"\xf0\x9f", b"\xff"]
    for name in names:
        (tmp_path / os.fsdecode(name)).touch()
    batches = list(listed(opened, who=None, after="A", at_once=1, names_at_once=1))
    shown = [entry.name for batch in batches for entry in batch or ()]
    assert shown == [os.fsdecode(name) for name in names[:-1]]
