"""Small file systems that can be filled up, for what happens when a disk is full."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BALLAST = "ballast"
_PIECES = (1 << 20, 1 << 12, 1)


class NoDisks(Exception):
    """No file system can be mounted here; the message says why."""


@contextmanager
def small_disk(folder: Path, *, mib: int, files: int = 0) -> Iterator[Path]:
    """A file system in memory at this folder, of so many MiB and, if given, files. It is taken
    away afterwards with all that it holds. Raises `NoDisks`."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise NoDisks("only root can mount a small file system, and on Linux")
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={mib}m,mode=0755" + (f",nr_inodes={files}" if files else "")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tidegate-disk", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        raise NoDisks(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        # Lazily: whoever has a file open there ends soon after.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Take all the room that is left, also of what others have freed since."""
    with (disk / BALLAST).open("ab", buffering=0) as ballast:
        for size in _PIECES:
            try:
                while True:
                    ballast.write(b"\0" * size)
            except OSError:
                continue


def free(disk: Path) -> None:
    """Give back what `fill` took."""
    (disk / BALLAST).unlink()
