"""Where tests put what they write: into memory where there is room, so that fsync costs nothing.

What is killed there leaves what it would leave on a disk; a power failure is not tried here.
"""

import os
import shutil
from functools import cache
from pathlib import Path

DISK = Path("/tmp")
ROOM_BYTES = 8 << 30
"""As much as a session's databases and folders never are, write-ahead logs included."""


@cache
def folder_of_tests() -> Path:
    """The folder for all of them. Its path is short, because those of sockets have to be."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < ROOM_BYTES:
        return DISK
    # Some tests run programs that they wrote.
    return DISK if os.statvfs(memory).f_flag & os.ST_NOEXEC else memory
