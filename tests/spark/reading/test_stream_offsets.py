"""What a stream from a table keeps and goes past: offsets, commits that are lost, sizes."""

import json

import pytest

from tests.spark.reading.change_data import append_rows
from tidegate import VersionNotFound
from tidegate.spark import StreamStopped, UnsupportedSession
from tidegate.spark.source.read_options import StreamOptions
from tidegate.spark.source.streams.files import StreamFiles
from tidegate.spark.source.streams.offset import Offset
from tidegate.spark.tables.layout import TableLayout


def layout_of(table):
    head = table.head()
    return TableLayout.of(name=table.name, location=table.location, metadata=head.metadata)


class TestLostCommits:
    """A log that was cleaned up past a stream."""

    @pytest.fixture
    def table(self, create):
        table = create("id bigint")
        append_rows(table, 0, 3)
        found = table.commit_bytes

        def commit_bytes(version):
            if version == 2:
                raise VersionNotFound("version 2 is gone", definite=True)
            return found(version)

        table.commit_bytes = commit_bytes
        return table

    def versions(self, table, **options):
        files = StreamFiles(table, layout_of(table), StreamOptions.parse(options))
        start = Offset(table_id=table.id, version=1)
        return [offset.version for offset, _ in files.steps(start, last=3)]

    def test_are_an_error(self, table):
        with pytest.raises(StreamStopped, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
            self.versions(table)

    def test_are_passed_over_where_that_is_asked_for(self, table):
        assert self.versions(table, failondataloss="false") == [2, 4]


class TestOffsets:
    def test_they_come_back_from_json(self):
        offset = Offset(table_id="t", version=3, index=4, is_snapshot=True)
        text = json.dumps(offset.to_json())
        assert Offset.parse(json.loads(text), table_id="t") == offset

    def test_one_of_a_newer_client_is_refused(self):
        value = Offset(table_id="t", version=3).to_json() | {"format": 2}
        with pytest.raises(StreamStopped, match="DELTA_INVALID_SOURCE_OFFSET_FORMAT"):
            Offset.parse(value, table_id="t")


@pytest.mark.parametrize(
    ("text", "expected"), [("1024", 1024), ("10m", 10 << 20), ("1gb", 1 << 30), ("7B", 7)]
)
def test_sizes_are_read_as_spark_writes_them(text, expected):
    assert StreamOptions.parse({"maxbytespertrigger": text}).max_bytes == expected


def test_a_size_of_nothing_is_refused():
    with pytest.raises(UnsupportedSession, match="number of bytes"):
        StreamOptions.parse({"maxbytespertrigger": "0"})
