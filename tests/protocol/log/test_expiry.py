"""A log is cut where nothing that is kept needs what was before."""

import pytest

from tidegate_protocol.log.expiry import DAY_MS, Expiry, cutoff_ms, version_of

CUTOFF_MS = 100


def log_of(*dates: int, checkpoints: tuple[int, ...] = (), begins: int = 0) -> Expiry:
    """Of commits with these dates, and checkpoints of these versions; `begins` is the first."""
    expiry = Expiry(CUTOFF_MS)
    for version, modified_ms in enumerate(dates, start=begins):
        if version in checkpoints:
            expiry.take(f"{version:020d}.checkpoint.parquet", 1, 1)
        expiry.take(f"{version:020d}.crc", 1, 1)
        expiry.take(f"{version:020d}.json", 1, modified_ms)
    return expiry


def cut(expiry: Expiry, *, least: int = 0, most: int = 1000) -> int | None:
    found = expiry.cut(least=least, most=most)
    return None if found is None else found.version


@pytest.mark.parametrize(
    ("now_ms", "retention_ms", "expected"),
    [
        (10 * DAY_MS + 5, DAY_MS, 9 * DAY_MS),
        (10 * DAY_MS, DAY_MS, 9 * DAY_MS),
        (10 * DAY_MS - 1, DAY_MS, 8 * DAY_MS),
        (10 * DAY_MS + 5, 0, 10 * DAY_MS),
        (5, DAY_MS, -DAY_MS),
    ],
)
def test_cuts_are_at_midnight(now_ms, retention_ms, expected):
    assert cutoff_ms(now_ms, retention_ms) == expected


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("00000000000000000003.json", 3),
        ("00000000000000000003.crc", 3),
        ("00000000000000000003.checkpoint.parquet", 3),
        ("00000000000000000003.checkpoint.0000000001.0000000002.parquet", 3),
        ("00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 3),
        ("00000000000000000003.00000000000000000006.compacted.json", 3),
        ("_last_checkpoint", None),
        ("3.json", None),
        ("00000000000000000003.json.tmp", None),
        ("part-0.parquet", None),
    ],
)
def test_versions_of_names(name, version):
    assert version_of(name) == version


def test_the_newest_checkpoint_that_has_expired_is_the_cut():
    expiry = log_of(10, 20, 30, 40, 150, 160, checkpoints=(1, 3, 5))
    assert (expiry.first, expiry.expired, expiry.is_over) == (0, 3, True)
    assert cut(expiry) == 3


def test_the_version_that_was_the_newest_at_the_cutoff_stays():
    """Whoever travels to the cutoff finds version 2."""
    assert cut(log_of(10, 20, 30, 150, checkpoints=(1, 3))) == 1
    assert cut(log_of(10, 20, CUTOFF_MS, 150, checkpoints=(1, 2))) == 1


def test_nothing_is_cut_without_a_checkpoint_or_before_its_time():
    assert cut(log_of(10, 20, 30)) is None
    assert cut(log_of(150, 160, checkpoints=(0, 1))) is None
    assert cut(Expiry(CUTOFF_MS)) is None


def test_bounds():
    expiry = log_of(10, 20, 30, 40, checkpoints=(1, 3))
    assert not expiry.is_over
    assert [cut(expiry, most=most) for most in (0, 1, 2, 3)] == [None, 1, 1, 3]
    assert [cut(expiry, least=least) for least in (0, 3, 4)] == [3, 3, None]


def test_a_version_that_owes_its_date_to_another_is_no_place_to_cut():
    """Version 2 is dated 31, by version 1: cut there, it would be dated 5."""
    expiry = log_of(10, 30, 5, 40, checkpoints=(1, 2))
    assert cut(expiry) == 1
    expiry = log_of(10, 30, 5, 40, checkpoints=(1, 2, 3))
    assert cut(expiry) == 3


def test_a_version_with_an_in_commit_timestamp_owes_its_date_to_none():
    dates = (10, 30, 30, 30, 40)
    for dated_since, expected in ((None, 1), (0, 3), (2, 3), (3, 3), (4, 1)):
        expiry = Expiry(CUTOFF_MS, dated_since=dated_since)
        for version, modified_ms in enumerate(dates):
            if version in (1, 3):
                expiry.take(f"{version:020d}.checkpoint.parquet", 1, 1)
            expiry.take(f"{version:020d}.json", 1, modified_ms)
        assert cut(expiry) == expected, dated_since


def test_a_date_that_is_moved_past_the_cutoff_has_not_expired():
    assert cut(log_of(10, 99, 5, 6, checkpoints=(1, 3))) == 1


def test_a_checkpoint_without_its_commit_is_no_place_to_cut():
    expiry = Expiry(CUTOFF_MS)
    expiry.take("00000000000000000002.checkpoint.parquet", 1, 1)
    for version in (3, 4):
        expiry.take(f"{version:020d}.json", 1, version)
    assert (expiry.first, cut(expiry)) == (2, None)


def test_an_incomplete_checkpoint_is_none():
    expiry = Expiry(CUTOFF_MS)
    expiry.take("00000000000000000002.checkpoint.0000000001.0000000002.parquet", 1, 1)
    expiry.take("00000000000000000002.json", 1, 5)
    expiry.take("00000000000000000003.checkpoint.parquet", 0, 1)
    expiry.take("00000000000000000003.json", 1, 6)
    assert cut(expiry) is None


def test_other_files_say_nothing():
    expiry = Expiry(CUTOFF_MS)
    expiry.take("README.md", 1, 1)
    assert expiry.first is None
