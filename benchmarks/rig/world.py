"""What all benches stand on: one folder on one disk, one Postgres, the service, an S3 server."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

import psycopg

from benchmarks.rig import processes
from benchmarks.rig.service import Service, serving
from demo.s3_server import S3Server
from tidegate_service.index.embedded.server import EmbeddedPostgres


class World:
    """Everything in it is made when it is first asked for, and ended with `standing`.

    `folder` holds all data: the Postgres, the tables, the S3 server's files, what rivals write.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._numbers = itertools.count(1)

    @cached_property
    def postgres(self) -> EmbeddedPostgres:
        """The service's own embedded Postgres; every database of a run is one of its."""
        return self._stack.enter_context(EmbeddedPostgres(self.folder))

    @cached_property
    def service(self) -> Service:
        """The service with its default settings, for whoever needs no other."""
        return self._stack.enter_context(self.serving())

    @cached_property
    def s3(self) -> S3Server:
        folder = self.new_folder()
        return self._stack.enter_context(S3Server(folder))

    def new_folder(self) -> Path:
        """An empty one, with a short path."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def new_database(self) -> str:
        """The URL of an empty database on `postgres`."""
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        head, _, parameters = self.postgres.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}?{parameters}"

    def serving(self, *flags: str) -> AbstractContextManager[Service]:
        """Another service on a database of its own, with flags of `tidegate serve`."""
        return serving(self.folder / str(next(self._numbers)), self.new_database(), *flags)

    @property
    def postgres_pid(self) -> int:
        """The server's first process; what it starts is below it."""
        pid_file = self.folder / "postgres" / "data" / "postmaster.pid"
        return int(pid_file.read_text().split("\n", 1)[0])

    @property
    def watched(self) -> dict[str, int]:
        """The processes, by name, whose CPU time a load takes beside the service's."""
        found = {"postgres": self.postgres_pid}
        # Only where a bench has asked for it: asking starts it.
        if "s3" in vars(self):
            found["s3"] = self.s3.pid
        return found

    def postgres_cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.postgres_pid)


@contextmanager
def standing(folder: Path) -> Iterator[World]:
    """A world in a new folder below this one, which has a short path; what it holds stays.

    Thousands of files that were just deleted make a file system slow for half a minute: ext4
    looks at each of their inodes before it takes another one for a new file.
    """
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(dir=folder, prefix=""))
        home.chmod(0o755)
        yield World(home, stack)


@contextmanager
def scratch(disk: Path | None) -> Iterator[Path]:
    """A folder for worlds on that disk, or where temporary files go; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidebench-", dir=disk) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
