"""Writers without a coordinator: processes that commit to one table with `deltalake`."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from deltalake import DeltaTable

from benchmarks.load.plan import Kind
from benchmarks.rig.world import World
from benchmarks.rivals.deltalake_writer import SCHEMA, Done, Turn, work

_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(["benchmarks.rivals.deltalake_writer"])
# For opening a new table, before the clock starts.
_HEAD_START_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Of all writers together; `failures` are calls that raised, after its own retries."""

    commits_per_second: float
    failures: int


class Rivals:
    """Some processes, each a writer; they wait where they are not measured."""

    def __init__(self, world: World, pipes: list[Connection]) -> None:
        self._world = world
        self._pipes = pipes

    def rate(self, *, kind: Kind, seconds: float) -> Rate:
        """Commits a second to a new table on the world's disk."""
        location = str(self._world.new_folder())
        partition_by = ["p"] if kind is Kind.OVERWRITE else None
        DeltaTable.create(location, SCHEMA, partition_by=partition_by)
        turn = Turn(
            location=location,
            kind=kind,
            begins=time.monotonic() + _HEAD_START_S,
            seconds=seconds,
        )
        for pipe in self._pipes:
            pipe.send(turn)
        done = [_done(pipe.recv()) for pipe in self._pipes]
        commits = sum(each.commits for each in done)
        landed = DeltaTable(location).version()
        if not 0 < commits <= landed:
            raise RuntimeError(f"deltalake counted {commits} commits, its table has {landed}")
        return Rate(
            commits_per_second=commits / seconds, failures=sum(each.failures for each in done)
        )


def _done(told: object) -> Done:
    assert isinstance(told, Done)
    return told


@contextmanager
def rivals(world: World, *, writers: int) -> Iterator[Rivals]:
    """So many processes, ended afterwards."""
    pipes, processes = [], []
    try:
        for number in range(writers):
            ours, theirs = _forking.Pipe()
            process = _forking.Process(target=work, args=(theirs, number), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()
        yield Rivals(world, pipes)
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.kill()
