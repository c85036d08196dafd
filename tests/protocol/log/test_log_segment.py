"""Which files of a log make a table (`log_segment`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log.segment import BrokenLog, Listing, LogSegment, choose_segment, missing

UUIDS = ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002")


def commit(version: int) -> tuple[str, int]:
    return f"{version:020d}.json", 10


def classic(version: int, size: int = 10) -> tuple[str, int]:
    return f"{version:020d}.checkpoint.parquet", size


def part(version: int, number: int, of: int) -> tuple[str, int]:
    return f"{version:020d}.checkpoint.{number:010d}.{of:010d}.parquet", 10


def v2(version: int, uuid: str = UUIDS[0], form: str = "json") -> tuple[str, int]:
    return f"{version:020d}.checkpoint.{uuid}.{form}", 10


def chosen(*files: tuple[str, int]) -> LogSegment:
    return choose_segment(Listing(files))


def names(*files: tuple[str, int]) -> tuple[str, ...]:
    return tuple(name for name, _ in files)


class TestBase:
    def test_all_commits_from_version_0(self):
        segment = chosen(commit(0), commit(1), commit(2), classic(1))
        assert segment.checkpoint is None
        assert (segment.replayed, segment.head) == (range(3), 2)
        assert segment.newest is not None
        assert segment.newest.files == names(classic(1))

    def test_the_oldest_checkpoint_that_reaches_the_head(self):
        segment = chosen(*(commit(v) for v in range(3, 9)), classic(1), classic(4), classic(6))
        assert segment.checkpoint is not None
        assert (segment.checkpoint.version, segment.replayed) == (4, range(5, 9))
        assert segment.newest is not None
        assert segment.newest.version == 6

    def test_a_checkpoint_right_before_the_first_commit(self):
        segment = chosen(classic(4), commit(5), commit(6))
        assert segment.checkpoint is not None
        assert (segment.checkpoint.version, segment.replayed) == (4, range(5, 7))
        assert segment.newest is None

    def test_what_lies_before_a_hole_is_out_of_reach(self):
        segment = chosen(commit(0), commit(1), commit(5), commit(6), classic(5))
        assert segment.checkpoint is not None
        assert (segment.checkpoint.version, segment.replayed) == (5, range(6, 7))

    def test_only_a_checkpoint(self):
        segment = chosen(classic(7))
        assert segment.checkpoint is not None
        assert (segment.checkpoint.version, segment.head) == (7, 7)
        assert list(segment.replayed) == []

    def test_a_checkpoint_newer_than_every_commit(self):
        segment = chosen(commit(0), commit(1), classic(5))
        assert segment.checkpoint is not None
        assert (segment.checkpoint.version, segment.head) == (5, 5)
        assert list(segment.replayed) == []


class TestCheckpoints:
    def test_parts_come_in_their_order_and_all(self):
        files = [part(3, number, 3) for number in (3, 1, 2)]
        segment = chosen(*files)
        assert segment.checkpoint is not None
        assert segment.checkpoint.files == names(part(3, 1, 3), part(3, 2, 3), part(3, 3, 3))

    def test_one_with_a_part_missing_is_none(self):
        segment = chosen(part(5, 1, 3), part(5, 3, 3), part(5, 1, 2), classic(3), commit(4))
        assert segment.head == 4
        assert segment.checkpoint is not None
        assert segment.checkpoint.version == 3

    def test_an_empty_file_is_none(self):
        with pytest.raises(BrokenLog, match="no commit and no complete checkpoint"):
            chosen(classic(3, size=0))

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ([classic(3), v2(3)], [v2(3)]),
            ([classic(3), part(3, 1, 2), part(3, 2, 2)], [part(3, 1, 2), part(3, 2, 2)]),
            ([v2(3, UUIDS[0]), v2(3, UUIDS[1], "parquet")], [v2(3, UUIDS[1], "parquet")]),
            ([part(3, 1, 1), part(3, 1, 2), part(3, 2, 2)], [part(3, 1, 2), part(3, 2, 2)]),
        ],
    )
    def test_of_several_of_one_version_the_one_that_delta_prefers(self, files, expected):
        for order in (files, files[::-1]):
            segment = chosen(*order)
            assert segment.checkpoint is not None
            assert segment.checkpoint.files == names(*expected)


class TestBroken:
    def test_versions_that_none_may_come_behind(self):
        assert chosen(classic(2**62)).head == 2**62
        for files in ([classic(2**62 + 1)], [classic(3), commit(2**63 - 2)], [classic(2**63 - 2)]):
            with pytest.raises(BrokenLog, match="expected none beyond 4611686018427387904"):
                chosen(*files)

    @pytest.mark.parametrize("files", [[], [("_last_checkpoint", 3)], [("0.json", 1)]])
    def test_nothing_in_it(self, files):
        with pytest.raises(BrokenLog, match="no commit and no complete checkpoint"):
            chosen(*files)

    @pytest.mark.parametrize(
        ("files", "version"),
        [
            ([commit(0), commit(2)], 1),
            ([commit(1)], 0),
            ([commit(0), commit(1), commit(3), commit(4)], 2),
            ([classic(2), commit(4), commit(5)], 3),
            # A compacted file stands for commits that are there, not for missing ones.
            ([commit(0), commit(3), (f"{1:020d}.{2:020d}.compacted.json", 9)], 2),
        ],
    )
    def test_a_gap_is_named(self, files, version):
        with pytest.raises(BrokenLog, match=f"^version {version} is missing"):
            chosen(*files)


class TestMissing:
    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ([], []),
            ([commit(3), classic(3)], []),
            ([commit(4), commit(5), classic(4)], []),
            ([commit(6)], [4, 5]),
            ([classic(6), commit(5)], [4, 6]),
            ([commit(4), commit(6), commit(8)], [5, 7]),
            # What is no complete checkpoint says nothing of commits before it.
            ([part(6, 1, 2), classic(5, size=0), (f"{7:020d}.crc", 9)], []),
        ],
    )
    def test_up_to_the_newest_that_is_there(self, files, expected):
        assert list(missing(Listing(files), behind=3)) == expected

    def test_what_a_name_claims_costs_nothing(self):
        assert next(missing(Listing([classic(2**63 - 1)]), behind=3)) == 4


OTHERS = [
    ("_last_checkpoint", 5),
    ("00000000000000000003.crc", 5),
    (f"{0:020d}.{2:020d}.compacted.json", 5),
    (".00000000000000000009.json.crc", 5),
    ("9.json", 5),
    ("00000000000000000009.json.tmp", 5),
    ("_commits", 0),
]


@given(
    commits=st.sets(st.integers(0, 12)),
    checkpoints=st.sets(st.integers(0, 12)),
    others=st.sets(st.sampled_from(OTHERS)),
    order=st.randoms(use_true_random=False),
)
def test_it_is_the_lowest_base_that_makes_every_version_up_to_the_head(
    commits, checkpoints, others, order
):
    """Against the definition, by trying every base."""
    files = [*map(commit, commits), *map(classic, checkpoints), *others]
    order.shuffle(files)
    head = max(commits | checkpoints, default=-1)
    bases = [
        base
        for base in range(head + 1)
        if (base in checkpoints or (base == 0 and 0 in commits))
        and set(range(base + 1, head + 1)) <= commits
    ]
    if not bases:
        with pytest.raises(BrokenLog):
            chosen(*files)
        return
    segment = chosen(*files)
    assert segment.head == head
    if bases[0] == 0 and 0 in commits:
        assert (segment.checkpoint, segment.replayed) == (None, range(head + 1))
    else:
        assert segment.checkpoint is not None
        assert segment.checkpoint.version == bases[0]
        assert segment.replayed == range(bases[0] + 1, head + 1)
        assert segment.older == tuple(sorted(version for version in commits if version < bases[0]))


@given(
    commits=st.sets(st.integers(0, 8)),
    checkpoints=st.sets(st.integers(0, 8)),
    least=st.integers(0, 9),
    through=st.none() | st.integers(0, 8),
)
def test_what_is_taken_as_not_there(commits, checkpoints, least, through):
    end = 8 if through is None else through
    left = [
        *map(commit, (version for version in commits if version <= end)),
        *map(classic, (version for version in checkpoints if least <= version <= end)),
    ]
    whole = Listing([*map(commit, commits), *map(classic, checkpoints)])
    try:
        expected = chosen(*left)
    except BrokenLog as broken:
        with pytest.raises(BrokenLog, match=f"^{broken}$"):
            choose_segment(whole, least=least, through=through)
    else:
        assert choose_segment(whole, least=least, through=through) == expected
