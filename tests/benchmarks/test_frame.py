"""Figures, floors, results on disk and the report that is made of them."""

import re
from datetime import UTC, datetime

import pytest

from benchmarks import registry
from benchmarks.__main__ import main
from benchmarks.frame import Bench, Figure, Limit, Pair, Result, at_least, at_most
from benchmarks.reporting import kept, report
from tests.repository import ROOT

MACHINE = kept.Machine(cores=2, processor="Z80", memory_gb=1, filesystem="ext4", python="3.11.0")


def figure(*ratios, floor=None, name="8 writers"):
    pairs = tuple(Pair(measured=100 * ratio, against=100) for ratio in ratios)
    return Figure(name=name, unit="commits/s", pairs=pairs, floor=floor, at=8)


def result_of(name, *figures, limits=()):
    return kept.Kept(
        id=name,
        title="one table, and more",
        measured="ours",
        against="theirs",
        ended=datetime(2026, 11, 21, tzinfo=UTC),
        seconds=1.5,
        quick=False,
        runs=3,
        seed=4,
        machine=MACHINE,
        result=Result(figures=figures, limits=limits, notes=("A note.",)),
    )


class TestFigure:
    def test_its_ratio_is_the_median_of_the_turns(self):
        assert figure(1, 9, 2).ratio == 2

    def test_the_median_of_ratios_is_not_the_ratio_of_medians(self):
        pairs = (
            Pair(measured=10, against=1),
            Pair(measured=20, against=40),
            Pair(measured=30, against=20),
        )
        found = Figure(name="x", unit="s", pairs=pairs)
        assert found.ratio == 1.5
        assert (found.measured, found.against) == (20, 20)

    @pytest.mark.parametrize(
        ("ratios", "floor", "reached"),
        [
            ((3, 3.1, 0.1), at_least(3), True),
            ((2.9, 9, 0.1), at_least(3), False),
            ((1.2, 9, 1), at_most(1.2), True),
            ((1.3, 1.3, 1), at_most(1.2), False),
            ((1,), None, None),
        ],
    )
    def test_a_floor_is_about_the_median(self, ratios, floor, reached):
        assert figure(*ratios, floor=floor).reached is reached

    @pytest.mark.parametrize(("measured", "against"), [(0, 1), (1, 0), (-1, 1), (1, float("nan"))])
    def test_a_turn_without_a_number_is_none(self, measured, against):
        with pytest.raises(ValueError, match="positive"):
            Pair(measured=measured, against=against)

    def test_a_figure_without_a_turn_is_none(self):
        with pytest.raises(ValueError, match="at least one pair"):
            figure()

    def test_a_limit_is_about_the_median_too(self):
        values = (900.0, 2000.0, 1000.0)
        assert Limit(name="memory", unit="MB", values=values, floor=at_most(1024)).reached
        assert not Limit(name="memory", unit="MB", values=values, floor=at_most(999)).reached


class TestReport:
    def test_it_says_what_was_reached_and_what_was_not(self, tmp_path):
        limit = Limit(name="peak", unit="MB", values=(2000.0,), floor=at_most(1024))
        found = [
            result_of("b1", figure(0.5, 1.5, 0.9, floor=at_least(1))),
            result_of("b9", figure(2, 4, 3, floor=at_least(1)), limits=(limit,)),
        ]
        report.write(tmp_path, found)
        text = (tmp_path / "report.md").read_text()
        head = text.partition("## B1")[0]
        assert re.search(
            r"B1.*\*\*0\.90\*\* \[0\.50 \.\. 1\.50\] \| at least 1 \| \*\*no\*\* \| 3", head
        )
        assert re.search(r"B9.*\*\*3\.00\*\* \[2\.00 \.\. 4\.00\] \| at least 1 \| yes \| 3", head)
        assert re.search(r"B9.*\*\*2,000\*\* MB .* at most 1024 \| \*\*no\*\*", head)
        assert "[B1](#b1-one-table-and-more)" in head

    def test_each_picture_that_it_shows_is_there(self, tmp_path):
        report.write(tmp_path, [result_of("b1", figure(0.5, floor=at_least(1)))])
        shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (tmp_path / "report.md").read_text())
        assert shown == ["pictures/floors.png", "pictures/writers.png"]
        assert all((tmp_path / path).read_bytes().startswith(b"\x89PNG") for path in shown)

    def test_a_result_comes_back_from_disk_as_it_was(self, tmp_path):
        found = [result_of("b2", figure(1.25)), result_of("b10", figure(2, 3))]
        for each in reversed(found):
            kept.keep(tmp_path, each)
        assert kept.kept_in(tmp_path) == found


def unexplained(found, notes):
    """The benches that miss a floor, of which these notes say nothing."""
    missing = (each.id for each in found if report.missed(each))
    paths = {name: notes / f"{name}.md" for name in missing}
    return [
        name for name, path in paths.items() if not path.exists() or not path.read_text().strip()
    ]


class TestNotes:
    def test_each_missed_floor_of_the_report_is_explained(self):
        found = kept.kept_in(ROOT / "benchmarks" / "results")
        assert {each.id for each in found} == set(registry.MODULES)
        assert unexplained(found, report.NOTES) == []

    def test_a_missed_floor_needs_a_note_that_says_something(self, tmp_path):
        limit = Limit(name="peak", unit="MB", values=(2000.0,), floor=at_most(1024))
        found = [
            result_of("b1", figure(2, floor=at_least(1)), figure(3)),
            result_of("b2", figure(0.5, floor=at_least(1))),
            result_of("b3", figure(0.5, floor=at_least(1))),
            result_of("b9", figure(2, floor=at_least(1)), limits=(limit,)),
        ]
        (tmp_path / "b2.md").write_text("The disk.\n")
        (tmp_path / "b3.md").write_text("\n")
        assert unexplained(found, tmp_path) == ["b3", "b9"]


class TestRegistry:
    def test_every_bench_of_it_is_there(self):
        benches = registry.load(list(registry.MODULES))
        assert [bench.id for bench in benches] == list(registry.MODULES)
        assert all(isinstance(bench, Bench) for bench in benches)

    def test_an_unknown_bench_is_refused(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "b1,b99"])
        with pytest.raises(SystemExit):
            main()
        assert "found b99" in capsys.readouterr().err

    def test_the_readme_has_a_row_for_each(self):
        text = (ROOT / "benchmarks" / "README.md").read_text()
        for name, module in registry.MODULES.items():
            file = module.removeprefix("benchmarks.").replace(".", "/")
            assert f"| {name.upper()} | `{file}.py`" in text
