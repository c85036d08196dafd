"""Who runs the embedded Postgres.

Postgres refuses to run as root, but services in containers and on build machines often do.
Then it runs as a system user of its own. The wheel's wrapper makes that work by opening every
folder above the data and the binaries to everybody, home folders included; here nothing is
opened. Where that user could not reach its files, the server keeps the one capability that
overrides it, which gives it nothing that the service, as root, does not have.
"""

import fcntl
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

USER = "tidegate-postgres"
_UNREACHABLE = (
    f"as root, Postgres runs as the user {USER}, which cannot reach the data folder or the "
    "Postgres programs, and {why}; run the service as another user than root, choose another "
    "--data-dir, or give a --database-url"
)


class EmbeddedPostgresError(RuntimeError):
    """The embedded Postgres cannot run here; the message says why and what to do."""


class Privileges(TypedDict, total=False):
    """The arguments by which `subprocess` changes the user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """How to start a program so that Postgres accepts its user; `uid` and `gid` own the data."""

    uid: int
    gid: int
    prefix: tuple[str, ...]
    privileges: Privileges

    def command(self, *arguments: str | Path) -> list[str]:
        return [*self.prefix, *map(str, arguments)]

    def own(self, path: Path) -> None:
        """Hand a file or folder of ours to the user."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def launcher_for(data: Path, *, postgres: Path) -> Launcher:
    """The launcher for a data folder, new or old, and the program `postgres`.

    Raises `EmbeddedPostgresError` where no user can run it.
    """
    if os.geteuid() != 0:
        return _as_ourselves(data)
    uid, gid = _owner(data)
    dropped: Privileges = {"user": uid, "group": gid, "extra_groups": []}
    plain = Launcher(uid=uid, gid=gid, prefix=(), privileges=dropped)
    if _reaches(plain, postgres, data.parent.parent):
        return plain
    overriding = Launcher(uid=uid, gid=gid, prefix=_overriding(uid, gid), privileges={})
    if _reaches(overriding, postgres, data.parent.parent):
        return overriding
    raise EmbeddedPostgresError(_UNREACHABLE.format(why="no capability overrides that here"))


def _as_ourselves(data: Path) -> Launcher:
    uid = os.geteuid()
    if data.exists() and data.stat().st_uid != uid:
        raise EmbeddedPostgresError(
            f"{data} belongs to the user id {data.stat().st_uid}, but the service runs as {uid}; "
            "run it as the same user as before, or give the folder to it"
        )
    return Launcher(uid=uid, gid=os.getegid(), prefix=(), privileges={})


def _owner(data: Path) -> tuple[int, int]:
    # A cluster that exists is run by whoever owns it: in a new container on an old volume, the
    # system user may have got another id.
    if data.exists():
        found = data.stat()
        if found.st_uid == 0:
            raise EmbeddedPostgresError(
                f"{data} belongs to root, whom Postgres refuses; give it to the user {USER}"
            )
        return found.st_uid, found.st_gid
    user = _system_user()
    return user.pw_uid, user.pw_gid


def _system_user() -> pwd.struct_passwd:
    # Any file serves as the lock; this one is there. Two services may start at once.
    with Path("/etc/passwd").open() as passwd:
        fcntl.flock(passwd, fcntl.LOCK_EX)
        try:
            return pwd.getpwnam(USER)
        except KeyError:
            pass
        tool = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
        if tool is None:
            raise EmbeddedPostgresError(
                f"Postgres refuses to run as root, and the user {USER} cannot be made without "
                "useradd; run the service as another user than root, or give a --database-url"
            )
        options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent")
        made = subprocess.run(
            [tool, *options, "--shell", "/usr/sbin/nologin", USER],
            check=False,
            capture_output=True,
            text=True,
        )
        try:
            return pwd.getpwnam(USER)
        except KeyError:
            raise EmbeddedPostgresError(
                f"Postgres refuses to run as root, and making the user {USER} failed: "
                f"{made.stderr.strip()}"
            ) from None


def _overriding(uid: int, gid: int) -> tuple[str, ...]:
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    if setpriv is None:
        raise EmbeddedPostgresError(_UNREACHABLE.format(why="there is no setpriv to override that"))
    return (
        setpriv,
        f"--reuid={uid}",
        f"--regid={gid}",
        "--clear-groups",
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=-all,+dac_override",
        "--no-new-privs",
        "--",
    )


def _reaches(launcher: Launcher, postgres: Path, folder: Path) -> bool:
    script = '"$1" --version && cd "$2"'
    tried = subprocess.run(
        launcher.command("/bin/sh", "-c", script, "sh", postgres, folder),
        check=False,
        capture_output=True,
        cwd="/",
        **launcher.privileges,
    )
    return tried.returncode == 0
