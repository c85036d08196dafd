"""The embedded Postgres: whose it is, when it ends, and what it leaves alone."""

import os
import pwd
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.memory import folder_of_tests
from tidegate_service.index.embedded.account import EmbeddedPostgresError, _overriding
from tidegate_service.index.embedded.server import DataDirectoryInUse, EmbeddedPostgres

SERVICE = """
import sys
from pathlib import Path
from tidegate_service.index.embedded.server import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
print(server.start(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as path:
        yield Path(path)


@pytest.fixture(scope="module")
def running():
    """A folder and the server that runs on it, which no test changes."""
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as path,
        EmbeddedPostgres(Path(path)) as server,
    ):
        yield Path(path), server


@pytest.fixture(scope="module")
def cluster():
    """A folder in which a server ran."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as path:
        with EmbeddedPostgres(Path(path)):
            pass
        yield Path(path)


@pytest.fixture
def used(cluster, folder):
    """A copy of it: to make one is most of what a start takes."""
    # `cp` keeps the owner, who is not always the one who copies.
    subprocess.run(["cp", "-a", cluster / "postgres", folder], check=True)
    return folder


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        (answer,) = connection.execute(question).fetchone()
    return answer


def postmaster(folder: Path) -> int:
    return int((folder / "postgres/data/postmaster.pid").read_text().split("\n", 1)[0])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_keeps_its_data_and_its_url(folder):
    server = EmbeddedPostgres(folder / "new" / "data-dir")
    assert not server.running
    with pytest.raises(EmbeddedPostgresError, match="not been started"):
        _ = server.url
    url = server.start()
    assert server.running
    assert server.start() == server.url == url
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS seven")
    server.stop()
    assert not server.running
    assert not answers(url)
    server.stop()
    with EmbeddedPostgres(folder / "new" / "data-dir") as again:
        assert again.url == url
        assert ask(url, "SELECT seven FROM kept") == 7
    assert not answers(url)


def test_it_is_durable_and_private(running):
    folder, server = running
    for setting, value in {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "listen_addresses": "",
        "max_connections": "200",
        "server_encoding": "UTF8",
    }.items():
        assert ask(server.url, f"SHOW {setting}") == value
    rules = "SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules"
    assert ask(server.url, rules) == ["scram-sha-256"]
    password = (folder / "postgres/password").read_text()
    assert len(password) > 40
    assert not answers(server.url.replace(password, "guess"))
    assert not answers(server.url.replace(f":{password}", ""))
    for name in ("", "password", "socket", "data"):
        assert mode(folder / "postgres" / name) & 0o077 == 0
    assert (
        password
        not in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True, check=True
        ).stdout
    )


def test_it_does_not_run_as_root(running):
    folder, _ = running
    assert Path(f"/proc/{postmaster(folder)}").stat().st_uid != 0


def test_folders_above_stay_closed(folder):
    closed = folder / "home"
    closed.mkdir(mode=0o700)
    before = {path: mode(path) for path in (closed, folder, *Path(sys.prefix).parents)}
    with EmbeddedPostgres(closed / "data-dir") as server:
        assert ask(server.url, "SELECT 1") == 1
    assert {path: mode(path) for path in before} == before


def test_long_paths_and_strange_ones(folder):
    """A socket's path has about a hundred bytes at most."""
    long = folder / ("x" * 120) / "wide röom's 100% & more"
    with EmbeddedPostgres(long) as server:
        assert ask(server.url, "SELECT 1") == 1
        assert "host=%2Ftmp%2Ftidegate-" in server.url
        with EmbeddedPostgres(folder / "another") as other:
            assert other.url != server.url
            assert ask(other.url, "SELECT 1") == 1


def test_a_socket_folder_of_somebody_else_is_refused(folder):
    long = folder / ("x" * 120)
    with EmbeddedPostgres(long) as server:
        sockets = Path(server.url.partition("host=")[2].replace("%2F", "/"))
        assert sockets.is_dir()
    # Made for this run, and gone with it.
    sockets.symlink_to(folder)
    try:
        with pytest.raises(EmbeddedPostgresError, match="not a folder of ours"):
            EmbeddedPostgres(long).start()
    finally:
        sockets.unlink()


def test_a_data_directory_serves_one_process(running):
    folder, server = running
    with pytest.raises(DataDirectoryInUse, match=f"process {os.getpid()} runs"):
        EmbeddedPostgres(folder).start()
    assert ask(server.url, "SELECT 1") == 1


@pytest.fixture
def service(folder):
    """Another process that runs an embedded Postgres in the folder; its URL is its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_a_process_that_ends_takes_its_server_with_it(folder, service):
    url = service.stdout.readline().strip()
    with pytest.raises(DataDirectoryInUse, match=f"process {service.pid} runs"):
        EmbeddedPostgres(folder).start()
    service.communicate()
    assert service.returncode == 0
    # A new start waits until the old server is gone, however it goes.
    with EmbeddedPostgres(folder) as server:
        assert server.url == url


def test_a_killed_process_takes_its_server_with_it(folder, service):
    url = service.stdout.readline().strip()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS seven")
    old = postmaster(folder)
    service.kill()
    service.wait()
    with EmbeddedPostgres(folder) as server:
        assert postmaster(folder) != old
        assert not Path(f"/proc/{old}").exists()
        assert ask(server.url, "SELECT seven FROM kept") == 7


def test_a_stale_pid_file_does_not_block_a_start(used):
    """After a crash of the machine, its number may be that of any process."""
    with EmbeddedPostgres(used):
        lines = (used / "postgres/data/postmaster.pid").read_text().split("\n")
        owner = (used / "postgres/data").stat()
    stale = used / "postgres/data/postmaster.pid"
    # A living process that Postgres would take for a server: of the same user.
    bystander = subprocess.Popen(
        ["/bin/cat"],
        stdin=subprocess.PIPE,
        **({"user": owner.st_uid} if os.geteuid() == 0 else {}),
    )
    for path in (stale, used / "postgres/socket/.s.PGSQL.5432.lock"):
        path.write_text("\n".join([str(bystander.pid), *lines[1:]]))
        os.chown(path, owner.st_uid, owner.st_gid)
    with EmbeddedPostgres(used) as server:
        assert ask(server.url, "SELECT 1") == 1
    assert bystander.poll() is None
    bystander.communicate()


def test_stopping_ends_open_transactions(folder):
    server = EmbeddedPostgres(folder)
    connection = psycopg.connect(server.start())
    connection.execute("SELECT 1")
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")


def test_a_start_that_fails_says_why_and_can_be_tried_again(used):
    configuration = used / "postgres/data/postgresql.conf"
    fine = configuration.read_text()
    configuration.write_text(fine + "no_such_setting = 1\n")
    server = EmbeddedPostgres(used)
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        server.start()
    assert not server.running
    configuration.write_text(fine)
    assert answers(server.start())
    server.stop()


def test_a_folder_that_cannot_be_made(folder):
    (folder / "file").touch()
    with pytest.raises(EmbeddedPostgresError, match="no server can run in"):
        EmbeddedPostgres(folder / "file").start()


def test_data_of_another_postgres_are_left_alone(used):
    (used / "postgres/data/PG_VERSION").write_text("11\n")
    with pytest.raises(EmbeddedPostgresError, match="made by Postgres 11"):
        EmbeddedPostgres(used).start()


def test_a_lost_password_is_not_made_up(used):
    (used / "postgres/password").unlink()
    with pytest.raises(EmbeddedPostgresError, match="password is gone"):
        EmbeddedPostgres(used).start()


def test_a_cluster_that_was_half_made_is_made_again(folder):
    half = folder / "postgres/data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    (folder / "postgres/password").write_text("of the first try")
    with EmbeddedPostgres(folder) as server:
        assert ask(server.url, "SELECT 1") == 1
    assert not half.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_data_of_root_or_of_somebody_else(used):
    data = used / "postgres/data"
    os.chown(data, 0, 0)
    with pytest.raises(EmbeddedPostgresError, match="belongs to root"):
        EmbeddedPostgres(used).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_it_runs_as_an_ordinary_user(folder):
    nobody = pwd.getpwnam("nobody")
    folder.chmod(0o777)
    # Whoever runs the tests may keep Python where nobody else can reach it.
    reaching = _overriding(nobody.pw_uid, nobody.pw_gid)
    done = subprocess.run(
        [*reaching, sys.executable, "-c", SERVICE, folder / "own"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("postgresql://"), done.stderr
    assert (folder / "own/postgres/data").stat().st_uid == nobody.pw_uid
    # As root again, the data's owner goes on with them.
    with EmbeddedPostgres(folder / "own") as server:
        assert ask(server.url, "SELECT 1") == 1
        assert Path(f"/proc/{postmaster(folder / 'own')}").stat().st_uid == nobody.pw_uid
