"""Every branch of the conflict rules and of the ledger is taken by their own unit tests."""

import os
import subprocess
import sys

from tests.repository import ROOT

COVERED = (
    "conflict/*.py",
    "features/file_demands.py",
    "features/row_tracking.py",
    "ledger/*.py",
    "prepare/finalize.py",
    "prepare/live_files.py",
    "prepare/schema_change.py",
    "proposal/isolation.py",
    "replay/foreign.py",
)


def test_rules_and_ledger_are_covered_branch_by_branch(tmp_path):
    protocol = ROOT / "protocol" / "tidegate_protocol"
    files = [str(file) for name in COVERED for file in sorted(protocol.glob(name))]
    assert len(files) > len(COVERED)
    tests = [
        str(path)
        for pattern in (
            "conflict/test_conflicts.py",
            "conflict/test_conflict_[mpr]*.py",
            "conflict/test_postings.py",
            "conflict/test_window*.py",
            "features/test_row_tracking.py",
            "ledger/test_ledger*.py",
            "prepare/test_expressions.py",
            "prepare/test_live_files.py",
            "prepare/test_rebase.py",
            "prepare/test_schema_change.py",
            "proposal/test_isolation.py",
        )
        for path in sorted((ROOT / "tests" / "protocol").glob(pattern))
    ]
    environment = {**os.environ, "COVERAGE_FILE": str(tmp_path / "coverage")}
    coverage = [sys.executable, "-m", "coverage"]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=short"]
    run = subprocess.run(
        [*coverage, "run", "--branch", f"--include={','.join(files)}", *pytest, *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    report = subprocess.run(
        [*coverage, "report", "--show-missing", "--fail-under=100"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert report.returncode == 0, report.stdout
    assert len(report.stdout.splitlines()) >= len(files)
