"""The benches by id. Each module has its bench as `BENCH`; only those asked for are imported."""

from collections.abc import Sequence
from importlib import import_module

from benchmarks.frame import Bench

MODULES = {
    "b1": "benchmarks.commits.b01_one_table",
    "b2": "benchmarks.commits.b02_deltalake",
    "b3": "benchmarks.commits.b03_plain_table",
    "b4": "benchmarks.commits.b04_plain_on_s3",
    "b5": "benchmarks.commits.b05_overwrites",
    "b6": "benchmarks.reading.b06_large_tables",
    "b7": "benchmarks.commits.b07_conflict_check",
    "b8": "benchmarks.reading.b08_scan",
    "b9": "benchmarks.commits.b09_large_commit",
    "b10": "benchmarks.reading.b10_spark",
    "b11": "benchmarks.commits.b11_many_tables",
    "b12": "benchmarks.reading.b12_opening",
    "b13": "benchmarks.upkeep.b13_checkpoint",
    "b14": "benchmarks.upkeep.b14_v2_checkpoint",
    "b15": "benchmarks.upkeep.b15_upkeep",
    "b16": "benchmarks.upkeep.b16_vacuum",
    "b17": "benchmarks.upkeep.b17_index_size",
    "b26": "benchmarks.commits.b26_stock_commits",
    "b27": "benchmarks.upkeep.b27_publishing",
    "b28": "benchmarks.commits.b28_wide_tables",
    "b29": "benchmarks.reading.b29_long_texts",
}


def load(ids: Sequence[str]) -> list[Bench]:
    """Those benches, in the order of their numbers."""
    return [_load(name) for name in MODULES if name in ids]


def _load(name: str) -> Bench:
    bench = import_module(MODULES[name]).BENCH
    if not isinstance(bench, Bench) or bench.id != name:
        raise TypeError(f"expected BENCH of {MODULES[name]} to be the bench {name}, found {bench}")
    return bench
