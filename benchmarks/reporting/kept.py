"""Results on disk, one file a bench, so that one bench can be run again without the others."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.frame import Bench, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where it ran, as far as it matters to a ratio."""

    cores: int
    processor: str
    memory_gb: int
    filesystem: str
    python: str

    def __str__(self) -> str:
        return (
            f"{self.cores} cores ({self.processor}), {self.memory_gb} GB, {self.filesystem}, "
            f"Python {self.python}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A bench's last run; `ended` is in UTC."""

    id: str
    title: str
    measured: str
    against: str
    ended: datetime
    seconds: float
    quick: bool
    runs: int
    seed: int
    machine: Machine
    result: Result


def keep(folder: Path, kept: Kept) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(kept), indent=1)
    (folder / f"{kept.id}.json").write_bytes(text + b"\n")


def kept_in(folder: Path) -> list[Kept]:
    """In the order of their numbers."""
    found = [
        msgspec.json.decode(path.read_bytes(), type=Kept, strict=False)
        for path in folder.glob("b*.json")
    ]
    return sorted(found, key=lambda kept: int(kept.id[1:]))


def of_run(
    bench: Bench, result: Result, *, seconds: float, quick: bool, runs: int, seed: int, disk: Path
) -> Kept:
    return Kept(
        id=bench.id,
        title=bench.title,
        measured=bench.measured,
        against=bench.against,
        ended=datetime.now(UTC).replace(microsecond=0),
        seconds=round(seconds, 1),
        quick=quick,
        runs=runs,
        seed=seed,
        machine=machine(disk),
        result=result,
    )


def machine(disk: Path) -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kind = subprocess.run(
        ["df", "--output=fstype", disk], capture_output=True, text=True, check=True
    )
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_gb=round(memory / 2**30),
        filesystem=_named(kind.stdout.split()[-1]),
        python=platform.python_version(),
    )


def _named(filesystem: str) -> str:
    # There, waiting for the disk is waiting for nothing, and no ratio of B1 means anything.
    return "tmpfs, which is no disk" if filesystem == "tmpfs" else filesystem


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
