"""`make bench` as a command: what it runs, keeps and says."""

import sys
from dataclasses import replace
from types import ModuleType

import pytest

import benchmarks.__main__ as command
from benchmarks import registry
from benchmarks.frame import Bench, Figure, Pair, Result, at_least
from benchmarks.reporting import kept, report


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Run the command with two benches: b1 gives a pair a turn, b2 breaks."""
    monkeypatch.setattr(command, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(registry, "MODULES", {"b1": "bench_one", "b2": "bench_two"})
    for name, run in (("b1", good), ("b2", broken)):
        module = ModuleType(registry.MODULES[name])
        module.BENCH = Bench(id=name, title=name, measured="ours", against="theirs", run=run)
        monkeypatch.setitem(sys.modules, registry.MODULES[name], module)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        return command.main()

    return run


def good(world, scale):
    world.new_folder()
    pairs = (Pair(measured=scale.pick(quick=1, full=2), against=4),) * scale.runs
    return Result(figures=(Figure(name="a", unit="s", pairs=pairs, floor=at_least(1)),))


def broken(world, scale):
    raise RuntimeError("b2 broke")


def test_a_full_run_is_kept_beside_the_code(bench, tmp_path):
    assert bench("--only", "b1", "--runs", "3") == 0
    [found] = kept.kept_in(tmp_path / "benchmarks" / "results")
    assert (found.runs, found.quick, found.result.figures[0].ratios) == (3, False, [0.5] * 3)
    assert (tmp_path / "benchmarks" / "report.md").exists()


def test_a_quick_run_is_kept_elsewhere(bench, tmp_path):
    assert bench("--quick", "--only", "b1") == 0
    [found] = kept.kept_in(tmp_path / ".bench" / "results")
    assert (found.runs, found.quick, found.result.figures[0].ratio) == (2, True, 0.25)
    assert not (tmp_path / "benchmarks").exists()


@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_one_that_breaks_stops_no_other_and_fails_the_command(bench, tmp_path, capsys, quick):
    assert bench(*quick) == 1
    said = capsys.readouterr()
    assert "RuntimeError: b2 broke" in said.err
    assert said.err.endswith("broken: b2\n")
    out = tmp_path / (".bench" if quick else "benchmarks")
    assert [found.id for found in kept.kept_in(out / "results")] == ["b1"]


def test_one_that_is_run_again_leaves_the_others_results(bench, tmp_path, monkeypatch):
    mended = replace(sys.modules["bench_two"].BENCH, run=good)
    monkeypatch.setattr(sys.modules["bench_two"], "BENCH", mended)
    assert bench() == 0
    assert bench("--only", "b2", "--runs", "1") == 0
    found = kept.kept_in(tmp_path / "benchmarks" / "results")
    assert [(each.id, each.runs) for each in found] == [("b1", 5), ("b2", 1)]
    assert "## B1: b1" in (tmp_path / "benchmarks" / "report.md").read_text()


def test_what_is_said_of_a_missed_floor_is_said_only_there(bench, tmp_path, monkeypatch):
    (tmp_path / "b1.md").write_text("Tried this.\n")
    monkeypatch.setattr(report, "NOTES", tmp_path)
    bench("--only", "b1")
    path = tmp_path / "benchmarks" / "report.md"
    assert "Tried this." in path.read_text()
    [found] = kept.kept_in(tmp_path / "benchmarks" / "results")
    reached = Figure(name="a", unit="s", pairs=(Pair(measured=9, against=1),), floor=at_least(1))
    report.write(tmp_path, [replace(found, result=Result(figures=(reached,)))])
    assert "Tried this." not in (tmp_path / "report.md").read_text()
