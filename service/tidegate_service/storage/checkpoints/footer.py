"""What a Parquet file's footer may say, looked at before Arrow makes something of it.

Arrow keeps the whole path of each leaf column, so a few names of a megabyte in a megabyte of footer
are gigabytes, and some hundred thousand columns take seconds that nothing can end.
"""

import os
from collections.abc import Generator
from typing import BinaryIO

import pyarrow as pa

from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.thrift import LIST, STRUCT, Thrift
from tidegate_service.storage.limits import CHECKPOINT_LIMITS

MAX_FOOTER_BYTES = 16 * 1024 * 1024
MAX_PATH = 4096
"""Bytes of the path of a column, whose names lie in one another."""
_SCHEMA = 2
_NAME, _CHILDREN = 4, 5
_INT32 = 5
_AT_ONCE = 1024


def check_footer(
    file: BinaryIO, *, most_columns: int = CHECKPOINT_LIMITS.columns
) -> Generator[None]:
    """Raises `TooLarge`, and `pa.ArrowInvalid` where it cannot be read; one that is too short is
    left to Arrow. Yields now and then, for others to go on."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 8, 0))
    length = int.from_bytes(file.read(4), "little")
    file.seek(0)
    if length + 8 > size:
        return
    if length > MAX_FOOTER_BYTES:
        raise TooLarge(f"its footer has {length} bytes; at most {MAX_FOOTER_BYTES} are read")
    file.seek(size - 8 - length)
    thrift = Thrift(file.read(length))
    file.seek(0)
    try:
        number = 0
        while True:
            number, kind = thrift.field(number)
            if not kind:
                return
            # There may be a second one, which goes before the first.
            if number == _SCHEMA and kind == LIST:
                yield from _check_schema(thrift, most_columns)
            else:
                yield from thrift.passed(kind)
    except IndexError:
        raise pa.ArrowInvalid("its footer ends too early") from None


def _check_schema(thrift: Thrift, most_columns: int) -> Generator[None]:
    kind, count = thrift.head_of_list()
    if kind != STRUCT:
        raise pa.ArrowInvalid("its schema is none")
    columns = 0
    # How many are still to come in each group that the next one lies in, and how long its path is.
    groups: list[list[int]] = []
    for index in range(count):
        if index % _AT_ONCE == 0:
            yield
        name, children = yield from _element(thrift)
        while groups and not groups[-1][0]:
            groups.pop()
        path = name
        if groups:
            groups[-1][0] -= 1
            path += groups[-1][1] + 1
        if path > MAX_PATH:
            raise TooLarge(f"a column's path has {path} bytes; at most {MAX_PATH} are read")
        if children > 0:
            groups.append([children, path])
        else:
            columns += 1
            if columns > most_columns:
                raise TooLarge(
                    f"it has more than {most_columns} columns, which are as many as are read"
                )


def _element(thrift: Thrift) -> Generator[None, None, tuple[int, int]]:
    """How long its name is, and how many are in it."""
    number = name = children = 0
    while True:
        number, kind = thrift.field(number)
        if not kind:
            return name, children
        start = thrift.at
        yield from thrift.passed(kind)
        if number == _NAME:
            name = thrift.at - start
        elif number == _CHILDREN and kind == _INT32:
            thrift.at = start
            children = thrift.number()
            # Arrow takes the last bits of it.
            if children.bit_length() > 31:
                raise pa.ArrowInvalid("its schema has a group of a size that is none")
