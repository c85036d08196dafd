"""What `make test` leaves out: `--short`. pytest by itself, and `make test-all`, run all.

A test marked `slow` is left out, and so are those listed here, for the reasons given.
"""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples each time, and fewer than usual; a test that asks for more has them.
settings.register_profile("short", settings.get_profile("ci"), max_examples=30)
SLOW = "it waits for time to pass, or measures memory, descriptors or threads"
LEFT_OUT = (
    # What one caller's load costs others, what a plan costs, and what waits for slow ones.
    "tests/service/api/http/connections/",
    "tests/service/log/watched/test_free_rows.py",
    "tests/service/tenants/",
    "tests/service/upkeep/test_caretaker",
    "tests/service/upkeep/test_upkeep_shown.py",
    "tests/service/api/http/test_off_the_loop.py",
    "tests/service/api/routes/test_api_principals.py::test_a_scan_that_its_caller_does_not_read",
    "tests/service/catalog_managed/test_backlog.py::TestTurns",
    "tests/service/catalog_managed/test_publisher.py::TestOneTableOfMany::test_a_store_that_hangs",
    "tests/service/catalog_managed/test_slow_looks.py",
    "tests/service/commit/queue/test_committer_shares.py::test_stores_that_hang_count_as_one",
    "tests/service/commit/test_long_predicates.py",
    "tests/service/index/postgres/test_sweeper.py::TestTransactionTimeout",
    "tests/service/storage/checkpoints/test_reader_places.py",
    "tests/service/tables/test_scan_plans.py",
    "tests/service/telemetry/test_tracing.py::test_a_collector_that_is_gone_holds_nothing_up",
    "tests/service/unity_catalog/test_stock_fairness.py",
    # They need Maven Central, a second PySpark, or an environment of their own.
    "tests/service/telemetry/test_tracing.py::test_wanted_without_the_packages",
    "tests/interop/",
    "tests/spark/commands/making/test_clone_s3.py",
    "tests/spark/data_files/test_s3.py",
    # They search by themselves: the longer, the more is found.
    "tests/fuzzing/",
    "tests/model/",
    "tests/protocol/scan/predicates/test_predicates_limits.py::TestAnyText",
    "tests/protocol/scan/predicates/test_predicates_limits.py::TestLimits::test_long_chains",
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
    "tests/service/commit/test_many_writers.py",
    "tests/service/storage/checkpoints/test_reader_processes.py",
    "tests/service/storage/local/test_storage_local_durability.py::TestKilledWriters",
    "tests/service/storage/local/test_storage_local_durability.py::TestRaces",
    "tests/service/unity_catalog/test_stock_commits.py::TestRaces::test_at_once_too",
    "tests/service/upkeep/clean_up/test_clean_up_killed.py",
    "tests/service/vacuum/test_kills.py",
    "tests/spark/streams/test_killed.py",
    # They repeat others, on S3 or on ports in memory.
    "tests/service/on_s3/",
    "tests/service/storage/checkpoints/test_checkpoint_files.py::TestS3",
    "tests/service/storage/remote/test_folder_pages.py",
    "tests/service/storage/remote/test_storage_s3",
    "tests/service/vacuum/data_files/test_data_files_s3.py",
    "tests/service/vacuum/test_vacuum_s3.py",
    "tests/simulation/on_memory/",
    # They are about benches, tests, documents and the repository.
    "tests/project/",
    "tests/service/telemetry/test_metrics.py::test_every_metric_is_documented",
    "tests/simulation/test_simulation.py::test_worlds_hold_whose_proposals",
    "tests/test_architecture.py",
    # They are long, and about what is rare.
    "tests/protocol/scan/predicates/test_predicates_steps.py::test_whatever_is_nested[",
    "tests/service/api/http/test_api_unavailable.py::TestDeadline",
    "tests/service/api/http/test_api_unavailable.py::TestStopping",
    "tests/service/api/http/test_broken_index.py",
    "tests/service/api/http/test_long_envelopes.py",
    "tests/service/api/routes/test_hostile_paths.py",
    "tests/service/catalog_managed/set_back/",
    "tests/service/catalog_managed/test_lost_log_files.py",
    "tests/service/catalog_managed/test_own_logs",
    "tests/service/commit/groups/test_buffered_files.py",
    "tests/service/commit/groups/test_group_windows.py",
    "tests/service/commit/outcomes/test_final_refusals.py::test_an_id_that_is_aborted",
    "tests/service/commit/queue/test_ready_tables.py",
    "tests/service/commit/test_early_checks.py",
    "tests/service/commit/test_large_commits.py",
    "tests/service/commit/test_wide_versions.py",
    "tests/service/index/postgres/test_index_failures.py::TestDurability::test_a_server",
    "tests/service/index/postgres/test_index_failures.py::test_a_database_that_was_away",
    "tests/service/index/postgres/test_index_lost_commits.py",
    "tests/service/index/postgres/test_index_parameters.py",
    "tests/service/index/reading/test_contents.py",
    "tests/service/index/reading/test_listed.py",
    "tests/service/index/reading/test_pages.py",
    "tests/service/index/test_index_files.py::TestPlans",
    "tests/service/index/schema/test_migration",
    "tests/service/log/foreign/test_late_writes.py",
    "tests/service/log/test_at_the_logs_end.py",
    "tests/service/log/test_gaps_in_logs.py",
    "tests/service/log/test_hidden_log.py",
    "tests/service/log/test_older_ids.py",
    "tests/service/log/test_used_places.py",
    "tests/service/log/watched/test_catch_up.py::test_no_lock_is_held",
    "tests/service/log/watched/test_copied_log.py",
    "tests/service/log/watched/test_damaged_checkpoints.py",
    "tests/service/log/watched/test_unmarked.py",
    "tests/service/manifests/test_killed.py",
    "tests/service/storage/checkpoints/test_checkpoint_files.py::TestLocalFiles::test_so_does_one",
    "tests/service/storage/checkpoints/test_wide_checkpoints.py",
    "tests/service/storage/test_logs_above.py",
    "tests/service/storage/test_probing.py",
    "tests/service/tables/registering/test_register_logs.py",
    "tests/service/tables/test_forgotten",
    "tests/service/tables/test_scan_pages.py",
    "tests/service/upkeep/checkpoints/test_lost_checkpoint.py",
    "tests/service/upkeep/checkpoints/test_taken_over.py",
    "tests/service/upkeep/clean_up/test_expired_",
    "tests/service/upkeep/test_compaction.py",
    "tests/service/vacuum/test_shared_places.py",
    "tests/simulation/test_simulation.py::test_worlds_that_are_aimed_hold[own-logs]",
    # On Spark: what the command vectors have, too, or few users meet.
    "tests/spark/commands/altering/",
    "tests/spark/commands/changing/test_char_partitions.py",
    "tests/spark/commands/changing/test_current_times.py::test_an_update",
    "tests/spark/commands/changing/test_current_times.py::test_chance",
    "tests/spark/commands/changing/test_current_times.py::test_conditions",
    "tests/spark/commands/changing/test_current_times.py::test_other",
    "tests/spark/commands/changing/test_marking.py",
    "tests/spark/commands/changing/test_own_rows.py::TestConditions::test_as_of_now",
    "tests/spark/commands/changing/test_own_rows.py::TestMerges::test_a_source_of_an_earlier_version",
    "tests/spark/commands/changing/test_own_rows.py::TestOverwrites::test_rows",
    "tests/spark/commands/changing/test_row",
    "tests/spark/commands/changing/test_session_txn.py::test_batches",
    "tests/spark/commands/changing/test_session_txn.py::test_the_version",
    "tests/spark/commands/changing/test_session_txn.py::test_what_a_write",
    "tests/spark/commands/changing/test_sources.py",
    "tests/spark/commands/changing/test_unreadable_files.py",
    "tests/spark/commands/clustering/test_cluster",
    "tests/spark/commands/making/test_clone.py::TestShallow::test_its_files_are_removed",
    "tests/spark/commands/making/test_table_builder.py",
    "tests/spark/commands/optimizing/test_compute_statistics.py",
    "tests/spark/commands/optimizing/test_optimize",
    "tests/spark/commands/test_conflicts.py",
    "tests/spark/commands/test_docs.py",
    "tests/spark/commands/test_restore.py",
    "tests/spark/commands/test_sql.py::TestMerge::test_stars",
    "tests/spark/commands/test_sql.py::TestMerge::test_the_source",
    "tests/spark/commands/test_sql.py::TestRows::test_words",
    "tests/spark/commands/test_sql_tables.py",
    "tests/spark/data_files/test_attempts.py",
    "tests/spark/data_files/test_storage.py",
    "tests/spark/reading/test_changes.py",
    "tests/spark/reading/test_column_mapping.py::test_a_column_that",
    "tests/spark/reading/test_column_mapping.py::test_the_source",
    "tests/spark/reading/test_deletion_vectors.py::test_on_s3_too",
    "tests/spark/reading/test_deletion_vectors.py::test_only_the_files_own_rows_go",
    "tests/spark/reading/test_local_times.py",
    "tests/spark/reading/test_stream_",
    "tests/spark/source/test_options.py",
    "tests/spark/source/test_read.py",
    "tests/spark/source/test_write.py::TestWriting::test_a_repeated_task",
    "tests/spark/source/test_write.py::TestRoundTrip::test_two_partition_columns",
    "tests/spark/source/test_write.py::TestWriting::test_a_where_that",
    "tests/spark/source/test_write.py::TestWriting::test_a_table_with_rules",
    "tests/spark/streams/test_guards.py",
    "tests/spark/streams/test_own_rows.py",
    "tests/spark/streams/test_sink.py::TestAppend::test_a_batch_without_rows",
    "tests/spark/streams/test_sink.py::TestAppend::test_both_roads",
    "tests/spark/streams/test_sink.py::TestStart::test_options",
    "tests/spark/streams/test_sink.py::TestSink::test_rows_of_any_table",
    "tests/spark/test_application.py",
    "tests/spark/test_features.py",
    "tests/spark/test_plans.py",
    "tests/spark/test_transaction.py::TestNesting::test_an_overwrite",
    "tests/spark/test_transaction.py::TestReads::test_all_reads",
    "tests/spark/test_transaction.py::TestReads::test_one_that",
    "tests/spark/test_transaction.py::TestReads::test_rows_of_files",
    "tests/spark/test_transaction.py::TestReads::test_what_was_read_after",
    "tests/spark/test_transaction.py::TestReads::test_what_was_read_of",
    "tests/spark/test_transaction.py::TestReads::test_reads_of",
    "tests/spark/test_transaction.py::TestWrites::test_another",
    "tests/spark/writing/test_as_select.py",
    "tests/spark/writing/test_constraints.py",
    "tests/spark/writing/test_defaults.py",
    "tests/spark/writing/test_identity.py",
    "tests/spark/writing/test_jobs.py",
    "tests/spark/writing/test_own_rows.py",
    "tests/spark/writing/test_overwrite.py::TestReplaceWhere::test_a",
    "tests/spark/writing/test_overwrite.py::TestReplaceWhere::test_by_no_rows",
    "tests/spark/writing/test_overwrite.py::TestReplaceWhere::test_times",
    "tests/spark/writing/test_replace_where.py::test_columns",
    "tests/spark/writing/test_replace_where.py::test_constraints",
    "tests/spark/writing/test_replace_where.py::test_a_concurrent_append_to",
    "tests/spark/writing/test_retries.py",
    "tests/spark/writing/test_session.py",
    "tests/spark/writing/test_widening.py",
    "tests/spark/writing/test_write_",
)
KEPT = (
    "tests/chaos/test_quick.py::test_nothing_is_lost[k1]",
    "tests/interop/stock_clients/test_duckdb.py",
    "tests/interop/stock_clients/test_recordings.py",
    "tests/service/catalog_managed/set_back/test_set_back.py",
    "tests/service/on_s3/test_commit_path.py",
    "tests/service/process/cli/test_cli_tables.py",
    "tests/service/process/cli/test_cli_tokens.py::TestDatabases::test_a_folder_that_no_service",
    "tests/service/process/killed/test_crash_points.py",
    "tests/service/process/test_settings.py",
    "tests/spark/commands/altering/test_new_rules.py",
    "tests/spark/source/test_options.py::TestBatch::test_columns_are_replaced",
)
"""Of those."""
SAMPLED = {
    "tests/service/access/test_places.py": 7,
    "tests/service/api/http/test_api_malformed.py": 3,
    "tests/service/api/routes/test_vectors_http.py": 3,
    "tests/service/tables/registering/test_register_golden.py": 3,
    "tests/service/tables/registering/test_register_paths.py": 3,
    "tests/service/upkeep/checkpoints/test_checkpoints_golden.py": 7,
}
"""Of each test of more than `FEW` cases every so many-th one runs, from the first one on. No number
is even: where a case comes on both kinds of table, the sample has both."""
FEW = 10
ON_SPARK = "tests/spark/"
VECTORS = "tests/spark/dml/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="leave out what tests/selection.py says")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"slow: {SLOW}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is left out as a whole is not even imported."""
    if not config.getoption("--short") or not collection_path.is_file():
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    has_kept = any(each.startswith(file) for each in KEPT)
    return (is_left_out(file) and not has_kept) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # What failed was in the sample that it was drawn from.
    if not config.getoption("--short") or config.getoption("lf", False):
        return
    cases = Counter(_test_of(item) for item in items)
    kept, left_out, tried = [], [], Counter[str]()
    for item in items:
        name = _test_of(item)
        is_sampled = tried[name] % _every(name, cases[name]) == 0
        tried[name] += 1
        is_left = not is_sampled or item.get_closest_marker("slow") or is_left_out(item.nodeid)
        (left_out if is_left else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _every(name: str, cases: int) -> int:
    file = name.partition("::")[0]
    # Spark takes a second or two for a test: of several cases the first one runs.
    if file.startswith(ON_SPARK) and not file.startswith(VECTORS):
        return cases
    return SAMPLED.get(file, 1) if cases > FEW else 1


def is_left_out(name: str) -> bool:
    return name.startswith(LEFT_OUT) and not name.startswith(KEPT)
