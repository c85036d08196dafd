"""The benches by id. Each module has its bench as `BENCH`; only those asked for are imported."""

from collections.abc import Sequence
from importlib import import_module

from benchmarks.frame import Bench

MODULES = {
    "b1": "benchmarks.b01_one_table",
    "b2": "benchmarks.b02_deltalake",
    "b3": "benchmarks.b03_plain_table",
    "b4": "benchmarks.b04_plain_on_s3",
    "b5": "benchmarks.b05_overwrites",
    "b6": "benchmarks.b06_large_tables",
    "b7": "benchmarks.b07_conflict_check",
    "b8": "benchmarks.b08_scan",
    "b9": "benchmarks.b09_large_commit",
    "b10": "benchmarks.b10_spark",
    "b11": "benchmarks.b11_many_tables",
    "b12": "benchmarks.b12_opening",
    "b13": "benchmarks.b13_checkpoint",
    "b14": "benchmarks.b14_v2_checkpoint",
    "b15": "benchmarks.b15_upkeep",
    "b16": "benchmarks.b16_vacuum",
    "b17": "benchmarks.b17_index_size",
    "b26": "benchmarks.b26_stock_commits",
    "b27": "benchmarks.b27_publishing",
}


def load(ids: Sequence[str]) -> list[Bench]:
    """Those benches, in the order of their numbers."""
    return [_load(name) for name in MODULES if name in ids]


def _load(name: str) -> Bench:
    bench = import_module(MODULES[name]).BENCH
    if not isinstance(bench, Bench) or bench.id != name:
        raise TypeError(f"expected BENCH of {MODULES[name]} to be the bench {name}, found {bench}")
    return bench
