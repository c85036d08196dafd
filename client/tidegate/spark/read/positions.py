"""Rows of data files by their positions, in Spark's plan: those that are in a set, or not.

The sets are a small DataFrame, joined by a broadcast below everything else. Each of its rows is a
chunk of a file's positions, as bits, so that it is small for few rows and for many.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_CHUNK_BITS = 12
_WORD_BITS = 6
_FILE_BITS = 40
_KEY = "__tidegate_chunk"
_WORDS = "__tidegate_words"


def without_rows(
    df: DataFrame, file: Column, position: Column, sets: Mapping[int, BitMap64]
) -> DataFrame:
    """The rows of the DataFrame but those whose position is in the set of their file. `file` and
    `position` are its columns' values, files are known by number."""
    return _filtered(df, file, position, sets, inside=False)


def only_rows(
    df: DataFrame, file: Column, position: Column, sets: Mapping[int, BitMap64]
) -> DataFrame:
    """The rows of the DataFrame whose position is in the set of their file."""
    return _filtered(df, file, position, sets, inside=True)


def with_membership(
    df: DataFrame, file: Column, position: Column, sets: Mapping[int, BitMap64], *, name: str
) -> DataFrame:
    """The DataFrame with a column that says whether a row's position is in the set of its file."""
    joined, found = _looked_up(df, file, position, sets, how="left")
    return joined.select("*", found.alias(name)).drop(_KEY, _WORDS)


def _filtered(
    df: DataFrame, file: Column, position: Column, sets: Mapping[int, BitMap64], *, inside: bool
) -> DataFrame:
    how = "inner" if inside else "left"
    joined, found = _looked_up(df, file, position, sets, how=how)
    return joined.where(found if inside else ~found).drop(_KEY, _WORDS)


def _looked_up(
    df: DataFrame, file: Column, position: Column, sets: Mapping[int, BitMap64], *, how: str
) -> tuple[DataFrame, Column]:
    """The DataFrame beside the sets, and whether a row of it is in the set of its file."""
    chunks = F.broadcast(df.sparkSession.createDataFrame(_chunks(sets)))
    key = F.shiftleft(file.cast("long"), _FILE_BITS).bitwiseOR(F.shiftright(position, _CHUNK_BITS))
    word = F.shiftright(position.bitwiseAND(F.lit((1 << _CHUNK_BITS) - 1)), _WORD_BITS)
    bit = position.bitwiseAND(F.lit((1 << _WORD_BITS) - 1)).cast("int")
    found = F.getbit(F.get(chunks[_WORDS], word.cast("int")), bit)
    return df.join(chunks, key == chunks[_KEY], how), F.coalesce(found, F.lit(0)) == 1


def _chunks(sets: Mapping[int, BitMap64]) -> pa.Table:
    keys, words = [np.zeros(0, np.int64)], [np.zeros((0, 1 << _CHUNK_BITS - _WORD_BITS), np.int64)]
    for number, bitmap in sets.items():
        positions = np.frombuffer(bitmap.to_array(), dtype=np.uint64).astype(np.int64)
        chunks, place = np.unique(positions >> _CHUNK_BITS, return_inverse=True)
        bits = np.zeros((len(chunks), 1 << _CHUNK_BITS), dtype=np.bool_)
        bits[place, positions & ((1 << _CHUNK_BITS) - 1)] = True
        keys.append((number << _FILE_BITS) | chunks)
        words.append(np.packbits(bits, axis=1, bitorder="little").view("<i8"))
    found = np.concatenate(words)
    offsets = np.arange(len(found) + 1, dtype=np.int32) * found.shape[1]
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(found.ravel()))
    return pa.table({_KEY: pa.array(np.concatenate(keys)), _WORDS: lists})
