"""What `make test` leaves out: `--short`. pytest by itself, and `make test-all`, run all.

A test marked `timed` is left out, and so are those listed here, for the reasons given.
"""

from pathlib import Path

import pytest

TIMED = "it measures time, memory or another resource, or waits for time to pass"
LEFT_OUT = (
    # What one caller's load costs others, as a ratio of times; and what waits for slow ones.
    "tests/service/api/http/connections/",
    "tests/service/log/watched/test_free_rows.py",
    "tests/service/tenants/",
    "tests/service/upkeep/test_caretaker",
    "tests/service/upkeep/test_upkeep_shown.py",
    # They need Maven Central, or a second PySpark.
    "tests/interop/",
    "tests/spark/commands/making/test_clone_s3.py",
    "tests/spark/data_files/test_s3.py",
    # They search by themselves: the longer, the more is found.
    "tests/fuzzing/",
    "tests/model/",
    "tests/service/api/routes/test_schemathesis.py",
    "tests/service/machine/",
    "tests/service/tables/registering/test_register_random.py",
    "tests/service/upkeep/checkpoints/test_checkpoints_random.py",
    "tests/service/upkeep/test_compaction_read.py",
    "tests/spark/predicates/",
    # They start, kill and stop processes and servers.
    "tests/chaos/test_quick.py::test_nothing_is_lost[",
    "tests/service/catalog_managed/failover/",
    "tests/service/process/",
    "tests/service/storage/checkpoints/test_reader_processes.py",
    "tests/service/upkeep/clean_up/test_clean_up_killed.py",
    "tests/service/vacuum/test_kills.py",
    "tests/spark/streams/test_killed.py",
    # They repeat others, on S3 or on ports in memory.
    "tests/service/on_s3/",
    "tests/service/storage/remote/test_storage_s3_faults.py",
    "tests/service/vacuum/data_files/test_data_files_s3.py",
    "tests/service/vacuum/test_vacuum_s3.py",
    "tests/simulation/on_memory/",
    # They are about benches, tests, documents and the repository.
    "tests/benchmarks/",
    "tests/chaos/test_soak.py",
    "tests/project/",
    "tests/simulation/test_mutations.py",
    "tests/simulation/test_worlds.py",
    "tests/test_architecture.py",
    # They are long, and about what is rare.
    "tests/protocol/scan/predicates/test_predicates_steps.py::test_whatever_is_nested[",
    "tests/service/api/routes/test_hostile_paths.py",
    "tests/service/catalog_managed/set_back/",
    "tests/service/catalog_managed/test_lost_log_files.py",
    "tests/service/catalog_managed/test_own_logs",
    "tests/service/commit/test_large_commits.py",
    "tests/service/index/reading/test_contents.py",
    "tests/service/index/reading/test_listed.py",
    "tests/service/index/schema/test_migration",
    "tests/service/telemetry/test_log_injection.py",
    "tests/service/upkeep/checkpoints/test_lost_checkpoint.py",
    "tests/service/upkeep/checkpoints/test_taken_over.py",
    "tests/service/upkeep/clean_up/test_expired_",
    "tests/service/vacuum/test_shared_places.py",
    # On Spark: what the command vectors have, too, or few users meet.
    "tests/spark/commands/altering/",
    "tests/spark/commands/changing/test_char_partitions.py",
    "tests/spark/commands/changing/test_marking.py",
    "tests/spark/commands/changing/test_row",
    "tests/spark/commands/changing/test_sources.py",
    "tests/spark/commands/changing/test_unreadable_files.py",
    "tests/spark/commands/clustering/test_cluster",
    "tests/spark/commands/making/test_table_builder.py",
    "tests/spark/commands/optimizing/test_compute_statistics.py",
    "tests/spark/commands/optimizing/test_optimize",
    "tests/spark/commands/test_conflicts.py",
    "tests/spark/commands/test_docs.py",
    "tests/spark/commands/test_passes.py",
    "tests/spark/commands/test_restore.py",
    "tests/spark/commands/test_sql_tables.py",
    "tests/spark/data_files/test_attempts.py",
    "tests/spark/data_files/test_storage.py",
    "tests/spark/reading/test_changes.py",
    "tests/spark/reading/test_local_times.py",
    "tests/spark/reading/test_stream_",
    "tests/spark/source/test_options.py",
    "tests/spark/source/test_read.py",
    "tests/spark/streams/test_guards.py",
    "tests/spark/streams/test_own_rows.py",
    "tests/spark/test_application.py",
    "tests/spark/test_features.py",
    "tests/spark/test_plans.py",
    "tests/spark/writing/test_as_select.py",
    "tests/spark/writing/test_constraints.py",
    "tests/spark/writing/test_defaults.py",
    "tests/spark/writing/test_identity.py",
    "tests/spark/writing/test_jobs.py",
    "tests/spark/writing/test_own_rows.py",
    "tests/spark/writing/test_retries.py",
    "tests/spark/writing/test_session.py",
    "tests/spark/writing/test_widening.py",
    "tests/spark/writing/test_write_",
)
KEPT = (
    "tests/chaos/test_quick.py::test_nothing_is_lost[k1]",
    "tests/interop/stock_clients/test_duckdb.py",
    "tests/interop/stock_clients/test_recordings.py",
    "tests/interop/test_deltalake.py",
    "tests/service/catalog_managed/set_back/test_set_back.py",
    "tests/service/on_s3/test_commit_path.py",
    "tests/service/process/cli/test_cli_tables.py",
    "tests/service/process/killed/test_crash_points.py",
    "tests/service/process/test_settings.py",
)
"""Of those."""
ON_SPARK = "tests/spark/"
VECTORS = "tests/spark/dml/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="leave out what tests/selection.py says")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"timed: {TIMED}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is left out as a whole is not even imported."""
    if not config.getoption("--short") or not collection_path.is_file():
        return None
    return is_left_out(collection_path.relative_to(config.rootpath).as_posix()) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--short"):
        return
    kept, left_out, tried = [], [], set()
    for item in items:
        name, _, case = item.nodeid.partition("[")
        # Spark takes a second or two for a test: of several cases the first one runs.
        is_further = case and name in tried and name.startswith(ON_SPARK)
        is_further = is_further and not name.startswith(VECTORS)
        tried.add(name)
        is_left = is_further or item.get_closest_marker("timed") or is_left_out(item.nodeid)
        (left_out if is_left else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def is_left_out(name: str) -> bool:
    return name.startswith(LEFT_OUT) and not name.startswith(KEPT)
