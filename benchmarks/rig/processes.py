"""What processes have used, from /proc."""

import os
from collections import defaultdict
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Of a process and everything below it, the children that have ended included."""
    return sum(_own_and_reaped(pid) for pid in tree(root))


def tree(root: int) -> list[int]:
    """The process and its descendants that live."""
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields:
                children[int(fields[1])].append(int(folder.name))
    found, left = [], [root]
    while left:
        pid = left.pop()
        found.append(pid)
        left += children[pid]
    return found


def busy_seconds() -> float:
    """CPU time that all processes of the machine have used since it started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[:7])
    return (user + nice + system + irq + softirq) / _TICKS


def peak_rss_bytes(pid: int) -> int:
    """The most resident memory that the process has had since its start or `forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"expected VmHWM in the status of process {pid}, found none")


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _own_and_reaped(pid: int) -> float:
    # utime, stime, cutime, cstime; a child that has ended is in the last two of its parent.
    return sum(int(field) for field in _stat(pid)[11:15]) / _TICKS


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold blanks; none for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
