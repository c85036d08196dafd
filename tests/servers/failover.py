"""A Postgres with a standby, to be failed over: both real, from the programs that are embedded."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg

from tests.memory import folder_of_tests
from tidegate_service.index.embedded.account import launcher_for
from tidegate_service.index.embedded.cluster import environment, programs
from tidegate_service.index.embedded.server import EmbeddedPostgres

PATIENCE_S = 60.0
STANDBY = "standby"
_POLL_S = 0.02


@dataclass(slots=True)
class Failover:
    """`primary` takes commits until it is killed; `standby` follows it until it is promoted."""

    primary: EmbeddedPostgres
    standby: EmbeddedPostgres
    _primary_folder: Path
    _way: str = ""

    @property
    def url(self) -> str:
        """The URL of whichever of the two takes commits."""
        parts = urlsplit(self.primary.url)
        hosts = [parse_qs(urlsplit(server.url).query)["host"][0] for server in self.servers]
        query = f"host={quote(','.join(hosts), safe=',')}&target_session_attrs=read-write"
        return parts._replace(query=query).geturl()

    @property
    def servers(self) -> tuple[EmbeddedPostgres, EmbeddedPostgres]:
        return self.primary, self.standby

    def wait_for_standby(self) -> None:
        """From now on the primary acknowledges what the standby has synced, too."""
        self._set(self.primary, "synchronous_standby_names", STANDBY)
        self._await(
            self.primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        )

    def cut_off(self) -> None:
        """From now on nothing reaches the standby."""
        with psycopg.connect(self.standby.url) as connection:
            (self._way,) = connection.execute("SHOW primary_conninfo").fetchone()
        self._set(self.standby, "primary_conninfo", "host=/nowhere")
        self._await(self.standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def let_in(self) -> None:
        """The standby that was cut off follows again."""
        self._set(self.standby, "primary_conninfo", self._way.replace("'", "''"))

    def wait_until_alone(self) -> None:
        """The primary knows that nobody follows it."""
        self._await(self.primary, "SELECT count(*) = 0 FROM pg_stat_replication")

    def kill_primary(self) -> None:
        """kill -9 of its first process, which ends them all."""
        pid_file = self._primary_folder / "postgres" / "data" / "postmaster.pid"
        os.kill(int(pid_file.read_text().split("\n", 1)[0]), signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while self.primary.running:
            assert time.monotonic() < deadline, "the primary did not end"
            time.sleep(_POLL_S)

    def promote(self) -> None:
        """The standby takes commits from now on."""
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)

    def _set(self, server: EmbeddedPostgres, name: str, value: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def _await(self, server: EmbeddedPostgres, question: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        with psycopg.connect(server.url, autocommit=True) as connection:
            while connection.execute(question).fetchone() != (True,):
                assert time.monotonic() < deadline, question
                time.sleep(_POLL_S)


@contextmanager
def failover() -> Iterator[Failover]:
    """A primary and its standby, asynchronous at first; both are ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as folder:
        one, other = Path(folder) / "a", Path(folder) / "b"
        # `cp` keeps the owner, who is not always the one who copies.
        subprocess.run(["cp", "-a", _cluster().name, one], check=True)
        with EmbeddedPostgres(one) as primary:
            _copy(primary.url, one, other)
            with EmbeddedPostgres(other) as standby:
                yield Failover(primary, standby, one)


@cache
def _cluster() -> tempfile.TemporaryDirectory[str]:
    """A primary's folder before its first start, made once: that is most of what one takes."""
    folder = tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests())
    with EmbeddedPostgres(Path(folder.name)):
        return folder


def _copy(url: str, folder: Path, to: Path) -> None:
    """A standby's data folder, with the way to its primary."""
    home = to / "postgres"
    home.mkdir(parents=True)
    launcher = launcher_for(home / "data", postgres=programs() / "postgres")
    launcher.own(home)
    shutil.copy(folder / "postgres" / "password", home / "password")
    subprocess.run(
        launcher.command(
            programs() / "pg_basebackup",
            f"--dbname={url}&application_name={STANDBY}",
            f"--pgdata={home / 'data'}",
            "--write-recovery-conf",
            "--checkpoint=fast",
        ),
        check=True,
        capture_output=True,
        cwd="/",
        env=environment(),
        **launcher.privileges,
    )
