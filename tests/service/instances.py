"""Instances of the service as processes, to be killed, stopped and started again by tests.

They are forked from one process that has imported everything, so one is up in a fraction of a
second. Each keeps its port for life: a client that knows its URL finds its successor there.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.service.process.instance_process import Arm, Deed, Point, Trace, run
from tidegate_service.api.server.server import bound_socket, url_of
from tidegate_service.core.observe.faults import AnyStep, Side
from tidegate_service.settings import Settings

PATIENCE_S = 60.0

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["tests.service.process.instance_process"])


class Instance:
    """One instance, up or down. Not safe to be used by several threads at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Held open, and inherited by every successor: the port stays this instance's.
        self._listener = bound_socket("127.0.0.1", 0)
        self.url = url_of(self._listener)
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def api(self) -> str:
        return f"{self.url}/api/v1"

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def start(self) -> None:
        """Begin to start, without waiting."""
        self._pipe, theirs = _forking.Pipe()
        self._process = _forking.Process(
            target=run, args=(self._settings, self._listener, theirs), daemon=True
        )
        self._process.start()
        theirs.close()

    def ready(self) -> "Instance":
        """Wait until it takes requests."""
        assert self._receive() == "ready"
        return self

    def arm(self, step: AnyStep, side: Side, deed: Deed) -> None:
        """Have it do this to itself at that point, once."""
        self._tell(Arm(step, side, deed))

    def trace(self) -> None:
        """Have it tell of every point that it passes; `reached` returns them one by one."""
        self._tell(Trace())

    def reached(self) -> Point:
        """Wait for the next point that it tells of."""
        point = self._receive()
        assert isinstance(point, tuple)
        return point

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit code, negative for a signal."""
        assert self._process is not None
        self._process.join(PATIENCE_S)
        assert self._process.exitcode is not None, "the instance did not end"
        return self._process.exitcode

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def close(self) -> None:
        """End it for good, whatever state it is in."""
        if self.alive:
            self.kill()
        if self._pipe is not None:
            self._pipe.close()
        self._listener.close()

    def _tell(self, told: Arm | Trace) -> None:
        assert self._pipe is not None
        self._pipe.send(told)
        assert self._receive() == told

    def _receive(self) -> object:
        assert self._pipe is not None
        assert self._process is not None
        found = wait([self._pipe, self._process.sentinel], PATIENCE_S)
        assert self._pipe in found, f"the instance ended: {self._process.exitcode}"
        return self._pipe.recv()


@contextmanager
def instances(*settings: Settings) -> Iterator[list[Instance]]:
    """One running instance for each settings, ended afterwards."""
    made = [Instance(each) for each in settings]
    try:
        for instance in made:
            instance.start()
        for instance in made:
            instance.ready()
        yield made
    finally:
        for instance in made:
            instance.close()
