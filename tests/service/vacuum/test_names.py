"""Which file of a table's folder a name in the log is."""

import pytest

from tidegate_protocol.log.paths import identity
from tidegate_service.core.ports.store.data_names import within


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "./a",
        "x//../a",
        "../t/a",
        "/w/t/a",
        "/w//t/a",
        "//w/t/a",
        "/w/u/../t/a",
        "/w/t/./a",
        "file:/w/t/a",
        "file:///w/t/a",
        "file:////w/t/a",
        "file://localhost/w/t/a",
        "FILE://localhost/w/t/a",
    ],
)
def test_one_file_has_many_names(path):
    assert within(identity(path), "file:///w/t") == "a"


@pytest.mark.parametrize(
    "path",
    ["/w/tt/a", "/w/t", "/w/t/..", "/w/t/../u/a", "../a", "s3://b/w/t/a", "/w/t/../../w/tt/a"],
)
def test_names_of_files_elsewhere(path):
    assert within(identity(path), "file:///w/t") is None


@pytest.mark.parametrize(
    "path",
    ["a", "../t/a", "/w/t/a", "/w//t/a", "s3://b/w/t/a", "s3a://b/w/t/a", "S3N://b//w/t/a"],
)
def test_one_object_has_many_names(path):
    assert within(identity(path), "s3://b/w/t") == "a"


@pytest.mark.parametrize("path", ["s3://c/w/t/a", "s3://b/w/tt/a", "gs://b/w/t/a"])
def test_names_of_objects_elsewhere(path):
    assert within(identity(path), "s3://b/w/t") is None
