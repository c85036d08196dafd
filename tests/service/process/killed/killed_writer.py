"""A writer that is killed before its n-th line, for every n.

`python -m tests.service.process.killed.killed_writer <folder> <path> <content>` forks one writer
for each line of `storage/local/files.py` that a put runs through; writer n works under the root
`<folder>/<n>` and ends by SIGKILL just before its n-th line. One JSON line a writer is printed:
`{"root": ..., "line": <line that was about to run, null for the writer that ended by itself>}`.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from tidegate_service.storage.local import files as local_files


def main(folder: str, path: str, content: str) -> None:
    step, killed = 0, True
    while killed:
        step += 1
        root = Path(folder) / f"{step:04}"
        root.mkdir()
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            _write_until(step, write_end, root, path, content.encode())
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            line = pipe.read()
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        if not killed and os.waitstatus_to_exitcode(status) != 0:
            sys.exit(f"writer {step} failed")
        print(json.dumps({"root": str(root), "line": int(line) if killed else None}))


def _write_until(step: int, report: int, root: Path, path: str, content: bytes) -> None:
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal lines
        if frame.f_code.co_filename != local_files.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == step:
                os.write(report, str(frame.f_lineno).encode())
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    files = local_files.LocalFiles(root)
    sys.settrace(trace)
    files.put_if_absent(path, content, create_folders=True)
    sys.settrace(None)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
