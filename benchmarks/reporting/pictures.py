"""The report's pictures, as PNG files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.frame import Figure, Sense
from benchmarks.load.loading import CPU
from benchmarks.reporting.kept import Kept

mpl.use("agg")

_REACHED, _MISSED = "#2a7f62", "#c8553d"
_OURS, _THEIRS = "#1f5f99", "#8a8a8a"
_PROCESSES = {
    "service": "#1f5f99",
    "postgres": "#7fb2dd",
    "s3": "#e0b04c",
    "load": "#bdbdbd",
}
_DPI = 110
_CURVES = ("b1", "b2", "b3")
_NAMES = {"b1": "pgbench, one row", "b2": "deltalake", "b3": "deltalake"}


def draw(folder: Path, found: Sequence[Kept]) -> list[Path]:
    """Draw what there is something to draw of; the files, `<name>.png`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    drawn = []
    for name, picture in (("floors", _floors), ("writers", _writers), ("cpu", _cpu)):
        if picture(found):
            path = folder / f"{name}.png"
            # Without a date in it, the same results make the same file.
            plt.savefig(path, dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
            plt.close()
            drawn.append(path)
    return drawn


def _with_floor(found: Sequence[Kept]) -> Iterator[tuple[str, Figure]]:
    for kept in found:
        for figure in kept.result.figures:
            if figure.floor is not None:
                yield f"{kept.id.upper()}  {figure.name}", figure


def _floors(found: Sequence[Kept]) -> bool:
    """A bar each, from the floor: to the right by as much as it is passed, to the left by as
    much as it is missed."""
    rows = list(_with_floor(found))
    if not rows:
        return False
    axes = _axes(width=9.5, height=1.4 + 0.36 * len(rows))
    least = most = 1.0
    for place, (_, figure) in enumerate(rows):
        assert figure.floor is not None
        wanted, over = figure.floor.value, figure.floor.sense is Sense.AT_LEAST
        multiples = sorted(r / wanted if over else wanted / r for r in figure.ratios)
        middle = median(multiples)
        colour = _REACHED if figure.reached else _MISSED
        axes.barh(place, middle - 1, left=1, height=0.6, color=colour)
        axes.plot([multiples[0], multiples[-1]], [place, place], color="black", linewidth=1)
        end = max(1.0, multiples[-1])
        least, most = min(least, multiples[0]), max(most, end)
        text = f" {_short(figure.ratio)} ({figure.floor})"
        axes.text(end * 1.06, place, text, va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlim(least * 0.7, most * 6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(
        "multiple of the floor (median; the line is the least and the most of the runs)"
    )
    axes.set_title("Ratios against their floors", loc="left", fontsize=11)
    axes.grid(axis="x", color="#e5e5e5")
    return True


def _writers(found: Sequence[Kept]) -> bool:
    """Commits a second over the number of writers, ours and theirs, one panel a bench."""
    benches = [kept for kept in found if kept.id in _CURVES and _on_curve(kept)]
    if not benches:
        return False
    _, panels = plt.subplots(
        1, len(benches), figsize=(0.6 + 3.9 * len(benches), 3.9), sharey=True, squeeze=False
    )
    for kept, axes in zip(benches, panels[0], strict=True):
        figures = _on_curve(kept)
        for colour, name, ours in (
            (_OURS, "Tidegate over HTTP", True),
            (_THEIRS, _NAMES[kept.id], False),
        ):
            _curve(axes, figures, colour, name, ours)
        axes.set_title(f"{kept.id.upper()}: {kept.title.partition(',')[0]}", fontsize=10)
        axes.set_xlabel("writers")
        axes.legend(fontsize=8, frameon=False)
    panels[0][0].set_ylabel("commits a second")
    return True


def _on_curve(kept: Kept) -> list[Figure]:
    return [figure for figure in kept.result.figures if figure.at is not None]


def _curve(axes: Axes, figures: Sequence[Figure], colour: str, name: str, ours: bool) -> None:
    at = [figure.at or 0.0 for figure in figures]
    rates = [
        sorted(pair.measured if ours else pair.against for pair in figure.pairs)
        for figure in figures
    ]
    axes.plot(at, [median(each) for each in rates], "o-", color=colour, label=name, markersize=4)
    axes.fill_between(
        at,
        [each[0] for each in rates],
        [each[-1] for each in rates],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(at, [f"{each:g}" for each in at])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(color="#e5e5e5")


def _cpu(found: Sequence[Kept]) -> bool:
    """CPU time of a commit, a bar a figure, a part a process."""
    rows = [
        (f"{kept.id.upper()}  {figure.name}", figure.profile)
        for kept in found
        for figure in kept.result.figures
        if CPU.format("service") in figure.profile
    ]
    if not rows:
        return False
    axes = _axes(width=9.5, height=1.4 + 0.36 * len(rows))
    for place, (_, profile) in enumerate(rows):
        left = 0.0
        for process, colour in _PROCESSES.items():
            took = profile.get(CPU.format(process), 0.0)
            axes.barh(
                place,
                took,
                left=left,
                height=0.6,
                color=colour,
                label=process if place == 0 or process == "s3" else None,
            )
            left += took
        axes.text(left, place, f" {left:,.0f} µs", va="center", fontsize=8)
    axes.margins(x=0.12)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("µs of CPU a commit")
    axes.set_title("What a commit takes", loc="left", fontsize=11)
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    axes.legend(
        once.values(),
        once.keys(),
        fontsize=8,
        frameon=False,
        ncols=len(once),
        loc="lower right",
        bbox_to_anchor=(1, 1),
    )
    axes.grid(axis="x", color="#e5e5e5")
    return True


def _axes(*, width: float, height: float) -> Axes:
    _, axes = plt.subplots(figsize=(width, height))
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
