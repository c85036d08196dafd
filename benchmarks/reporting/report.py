"""The report: `report.md` and its pictures, from the results that are kept beside it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.frame import Figure, Limit
from benchmarks.reporting import pictures
from benchmarks.reporting.kept import Kept

_HEAD = """# Benchmarks

Every figure is a ratio of two things that were run in turns on the same disk, most within half a
minute of each other and those of B9 within two: the median over the runs, and in brackets the least
and the most of them. The absolute numbers beside them are of the machine that is named, shared with
whatever else ran on it. How each one is measured, and what it does not say, is in
[README.md](README.md). `make bench` makes this page; what it says of a missed floor is taken from
`notes`, which are written by hand.
"""
NOTES = Path(__file__).parents[1] / "notes"
"""What is said of a bench that misses a floor, by hand: why, and what was tried."""
_ALT = {
    "floors": "Each ratio as a multiple of its floor",
    "writers": "Commits a second by the number of writers",
    "cpu": "CPU time of a commit, by process",
}


def write(out: Path, found: Sequence[Kept]) -> None:
    """Write `report.md` and `pictures/` into the folder."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = pictures.draw(out / "pictures", found)
    parts = [
        _HEAD,
        "\n".join(_floors(found)),
        *(f"![{_ALT[path.stem]}]({path.relative_to(out)})\n" for path in drawn),
        *("\n".join(_section(kept)) for kept in found),
    ]
    (out / "report.md").write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


def summary(kept: Kept) -> str:
    """A line for each figure and limit, for the terminal."""
    lines = [f"  {_plain(figure)}" for figure in kept.result.figures]
    lines += [
        f"  {limit.name}: {number(limit.value)} {limit.unit} "
        f"({limit.floor}: {'yes' if limit.reached else 'no'})"
        for limit in kept.result.limits
    ]
    return "\n".join([*lines, *(f"  {note}" for note in kept.result.notes)])


def missed(kept: Kept) -> bool:
    """Whether a floor is."""
    result = kept.result
    reached = [each.reached for each in result.figures] + [each.reached for each in result.limits]
    return False in reached


def number(value: float) -> str:
    """With three digits that say something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _plain(figure: Figure) -> str:
    floor = "" if figure.floor is None else f" ({figure.floor}: {_said(figure.reached)})"
    return (
        f"{figure.name}: {number(figure.ratio)} {_spread(figure)}{floor}; "
        f"{number(figure.measured)} against {number(figure.against)} {figure.unit}"
    )


def _spread(figure: Figure) -> str:
    return f"[{number(min(figure.ratios))} .. {number(max(figure.ratios))}]"


def _said(reached: bool | None) -> str:
    return {None: "", True: "yes", False: "**no**"}[reached]


def _floors(found: Sequence[Kept]) -> Iterator[str]:
    """All that has a floor, on one screen."""
    yield "| | | ratio | floor | reached | runs |"
    yield "|---|---|---|---|---|---|"
    for kept in found:
        label = f"[{kept.id.upper()}](#{_anchor(_title(kept))})"
        for figure in kept.result.figures:
            if figure.floor is not None:
                yield (
                    f"| {label} | {kept.title}: {figure.name} | **{number(figure.ratio)}** "
                    f"{_spread(figure)} | {figure.floor} | {_said(figure.reached)} "
                    f"| {len(figure.pairs)} |"
                )
        for limit in kept.result.limits:
            yield (
                f"| {label} | {kept.title}: {limit.name} | {_value(limit)} | {limit.floor} "
                f"| {_said(limit.reached)} | {len(limit.values)} |"
            )
    yield ""


def _value(limit: Limit) -> str:
    low, high = number(min(limit.values)), number(max(limit.values))
    return f"**{number(limit.value)}** {limit.unit} [{low} .. {high}]"


def _title(kept: Kept) -> str:
    return f"{kept.id.upper()}: {kept.title}"


def _anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    kept = (char for char in title.lower() if char.isalnum() or char in " -_")
    return "".join(kept).replace(" ", "-")


def _section(kept: Kept) -> Iterator[str]:
    yield f"## {_title(kept)}"
    yield ""
    yield f"Measured: {kept.measured}. Against: {kept.against}."
    yield ""
    yield "| | ratio | floor | reached | measured | against | unit | runs |"
    yield "|---|---|---|---|---|---|---|---|"
    for figure in kept.result.figures:
        yield (
            f"| {figure.name} | **{number(figure.ratio)}** {_spread(figure)} "
            f"| {figure.floor or ''} | {_said(figure.reached)} | {number(figure.measured)} "
            f"| {number(figure.against)} | {figure.unit} | {len(figure.pairs)} |"
        )
    for limit in kept.result.limits:
        yield (
            f"| {limit.name} | | {limit.floor} | {_said(limit.reached)} | {_value(limit)} "
            f"| | {limit.unit} | {len(limit.values)} |"
        )
    yield ""
    yield from _profiles(kept.result.figures)
    for note in kept.result.notes:
        yield f"{note}\n"
    if missed(kept) and (NOTES / f"{kept.id}.md").exists():
        yield (NOTES / f"{kept.id}.md").read_text(encoding="utf-8")
    quick = " quick," if kept.quick else ""
    yield f"Run of {kept.ended:%Y-%m-%d},{quick} seed {kept.seed}, on {kept.machine}.\n"


def _profiles(figures: Sequence[Figure]) -> Iterator[str]:
    """What a unit of work took, where a bench says it: a column for each figure."""
    profiles: list[Mapping[str, float]] = [figure.profile for figure in figures]
    names = list(dict.fromkeys(name for profile in profiles for name in profile))
    if not names:
        return
    yield f"| what it took | {' | '.join(figure.name for figure in figures)} |"
    yield f"|---|{'---|' * len(figures)}"
    for name in names:
        found = (number(profile[name]) if name in profile else "" for profile in profiles)
        yield f"| {name} | {' | '.join(found)} |"
    yield ""
