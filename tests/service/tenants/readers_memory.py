"""What the processes that read checkpoints hold, beside the service's own memory."""

import re
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from tidegate_service.storage.checkpoints.apart import forking as module

EVERY_S = 0.02


class ReadersMemory:
    """A context manager: `peak_bytes` is the most that the readers of a service held together, of
    memory that none of them shares."""

    def __init__(self, service: int) -> None:
        self._service = psutil.Process(service)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peak_bytes = 0

    def __enter__(self) -> "ReadersMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            with suppress(psutil.NoSuchProcess):
                readers = [
                    reader
                    for forking in self._service.children()
                    if module.__name__ in forking.cmdline()
                    for reader in forking.children()
                ]
                self.peak_bytes = max(self.peak_bytes, sum(map(_own_bytes, readers)))


def _own_bytes(reader: psutil.Process) -> int:
    try:
        status = Path(f"/proc/{reader.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0
