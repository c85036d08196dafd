"""The grammar of `_delta_log`'s file names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log.file_names import (
    MAX_VERSION,
    CheckpointFile,
    ChecksumFile,
    CommitFile,
    CompactedFile,
    LastCheckpoint,
    MultiPartCheckpoint,
    Unknown,
    V2Checkpoint,
    checkpoint_name,
    commit_name,
    parse,
    part_name,
    v2_checkpoint_name,
)

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
V10 = "00000000000000000010"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (f"{V10}.json", CommitFile(version=10)),
        ("09223372036854775807.json", CommitFile(version=MAX_VERSION)),
        (f"{V10}.checkpoint.parquet", CheckpointFile(version=10)),
        (
            f"{V10}.checkpoint.0000000002.0000000003.parquet",
            MultiPartCheckpoint(version=10, part=2, parts=3),
        ),
        (
            f"{V10}.checkpoint.{UUID}.json",
            V2Checkpoint(version=10, uuid=UUID, format="json"),
        ),
        (
            f"{V10}.checkpoint.{UUID.upper()}.parquet",
            V2Checkpoint(version=10, uuid=UUID.upper(), format="parquet"),
        ),
        (
            f"00000000000000000004.{V10}.compacted.json",
            CompactedFile(start=4, end=10),
        ),
        (f"{V10}.crc", ChecksumFile(version=10)),
        ("_last_checkpoint", LastCheckpoint()),
    ],
)
def test_every_kind_of_file_is_told_by_its_name(name, file):
    assert parse(name) == file


@pytest.mark.parametrize(
    "name",
    [
        "",
        "10.json",
        "0000000000000000010.json",
        "000000000000000000010.json",
        f"{V10}.json.tmp",
        f" {V10}.json",
        f"{V10}.json\n",
        f".{V10}.json.crc",
        f"{V10}.JSON",
        f"-{V10[1:]}.json",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١.json",
        "09223372036854775808.json",
        "99999999999999999999.json",
        f"{V10}.{UUID}.json",
        f"{V10}.checkpoint.json",
        f"{V10}.checkpoint.1.3.parquet",
        f"{V10}.checkpoint.0000000000.0000000003.parquet",
        f"{V10}.checkpoint.0000000004.0000000003.parquet",
        f"{V10}.checkpoint.0000000001.0000000003.json",
        f"{V10}.checkpoint.not-a-uuid.parquet",
        f"{V10}.checkpoint.{UUID}.avro",
        f"{V10}.{V10}.compacted.json",
        f"{V10}.00000000000000000004.compacted.json",
        f"{V10}.99999999999999999999.compacted.json",
        f"{V10}.compacted.json",
        "_last_checkpoint.json",
        "_staged_commits",
        f"_staged_commits/{V10}.{UUID}.json",
    ],
)
def test_any_other_name_is_unknown(name):
    assert parse(name) == Unknown(name=name)


@given(st.integers(0, MAX_VERSION))
def test_commit_names_are_read_back(version):
    assert parse(commit_name(version)) == CommitFile(version=version)


@given(st.lists(st.integers(0, MAX_VERSION), min_size=2))
def test_commit_names_sort_as_their_versions_do(versions):
    assert sorted(map(commit_name, versions)) == [commit_name(v) for v in sorted(versions)]


@given(st.text())
def test_no_name_is_an_error(name):
    assert parse(name) is not None


@pytest.mark.parametrize("version", [-1, MAX_VERSION + 1])
def test_there_are_no_names_beyond_the_versions(version):
    with pytest.raises(ValueError, match="is not a version"):
        commit_name(version)


def test_names_of_checkpoints_are_read_back():
    assert parse(checkpoint_name(10)) == CheckpointFile(version=10)
    assert parse(part_name(10, 2, 3)) == MultiPartCheckpoint(version=10, part=2, parts=3)
    for form in ("json", "parquet"):
        name = v2_checkpoint_name(10, UUID, form)
        assert parse(name) == V2Checkpoint(version=10, uuid=UUID, format=form)
