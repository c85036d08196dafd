"""Which of the files that a DataFrame reads each of its rows is from, as a number."""

import json
import zlib
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import FileAction
from tidegate_protocol.log.paths import decode

_BUCKET = 4
_LOCAL = "file:"


def file_numbers(
    df: DataFrame,
    layout: TableLayout,
    files: Sequence[FileAction],
    numbers: Sequence[int] | None = None,
) -> Column:
    """The number of each row's file: its place among `files`, which are those that the DataFrame
    reads, each once, or what `numbers` has there."""
    given = range(len(files)) if numbers is None else numbers
    known = {layout.url(decode(f.path)): n for f, n in zip(files, given, strict=True)}
    # Asked of Spark, because only Spark knows which characters of a path it escapes.
    escaped = {_spellings(url) for url in df.inputFiles()}
    if len(escaped) != len(files):
        raise AssertionError(f"expected {len(files)} files, Spark reads {len(escaped)}")
    spelled = {url: known[unquote(urls[0])] for urls in escaped for url in urls}
    return _looked_up(df.metadataColumn("_metadata").getField("file_path"), spelled)


def row_positions(df: DataFrame) -> Column:
    """The position of each row in its file, whatever of the file is passed over."""
    return df.metadataColumn("_metadata").getField("row_index")


def _spellings(url: str) -> tuple[str, ...]:
    """The ways in which Hadoop writes one URL; the first one is ours. It leaves out an empty host
    in one place and spells it in another."""
    if not url.startswith(_LOCAL):
        return (url,)
    path = url.removeprefix(_LOCAL).lstrip("/")
    return f"{_LOCAL}///{path}", f"{_LOCAL}/{path}"


def _looked_up(file: Column, numbers: Mapping[str, int]) -> Column:
    """The number of each row's file in a literal.

    A map literal is searched from its beginning for every row; with many files it is split by a
    checksum of the path, so that each part stays short.
    """
    count = max(1, len(numbers) // _BUCKET)
    buckets: list[dict[str, int]] = [{} for _ in range(count)]
    for url, number in numbers.items():
        buckets[zlib.crc32(url.encode()) % count][url] = number
    maps = F.from_json(F.lit(json.dumps(buckets)), "array<map<string,int>>")
    bucket = F.pmod(F.crc32(file), F.lit(count)).cast("int") if count > 1 else F.lit(0)
    found = F.element_at(F.get(maps, bucket), file)
    unknown = F.concat(F.lit("tidegate: no partition values for the file "), file)
    return F.coalesce(found, F.raise_error(unknown))
