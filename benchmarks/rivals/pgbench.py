"""pgbench doing the minimal durable commit, on the Postgres that the service uses.

One statement, so one round trip, one transaction and one wait for the disk: it moves a head on
by one and inserts a row of 1 KB. Prepared, with the kilobyte as a parameter. Of the three ways
to write it (four round trips, a pipeline, one statement) this is the fastest.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.rig.world import World
from tidegate_service.index.embedded.cluster import programs

ROW_BYTES = 1024
_RATE = re.compile(r"^tps = ([0-9.]+) ", re.M)
_FAILED = re.compile(r"^number of failed transactions: ([0-9]+) ", re.M)
_TABLES = """
    CREATE TABLE heads (id bigint PRIMARY KEY, version bigint NOT NULL) WITH (fillfactor = 10);
    CREATE TABLE commits (
        id bigint, version bigint, content text NOT NULL, PRIMARY KEY (id, version)
    );
"""
ONE_STATEMENT = """
WITH head AS (UPDATE heads SET version = version + 1 WHERE id = {row} RETURNING id, version)
INSERT INTO commits SELECT id, version, :content FROM head;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pgbench:
    """A database with its two tables; `rate` loads it."""

    url: str
    folder: Path

    def rate(self, *, clients: int, rows: int, seconds: int) -> float:
        """Commits a second, by so many clients; client i commits to row i modulo `rows`."""
        # Its time includes that of connecting, though its rate does not.
        connecting = clients // 64
        row = "1" if rows == 1 else f"(:client_id % {rows}) + 1"
        path = self.folder / "script.sql"
        path.write_text(ONE_STATEMENT.format(row=row))
        found = conninfo_to_dict(self.url)
        done = subprocess.run(
            [
                programs() / "pgbench",
                "--no-vacuum",
                "--protocol=prepared",
                f"--client={clients}",
                f"--jobs={min(clients, os.cpu_count() or 1)}",
                f"--time={seconds + connecting}",
                f"--define=content={'x' * ROW_BYTES}",
                f"--file={path}",
                f"--host={found['host']}",
                f"--username={found['user']}",
                str(found["dbname"]),
            ],
            env={"PGPASSWORD": str(found["password"]), "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        rate, failed = _RATE.search(done.stdout), _FAILED.search(done.stdout)
        if done.returncode != 0 or rate is None or failed is None or int(failed.group(1)):
            raise RuntimeError(f"pgbench failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return float(rate.group(1))


def pgbench_in(world: World, *, rows: int) -> Pgbench:
    """In a new database on the world's Postgres."""
    url = world.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLES)
        connection.execute(
            "INSERT INTO heads SELECT id, 0 FROM generate_series(1, %s) AS id", [rows]
        )
    return Pgbench(url=url, folder=world.new_folder())


def settings(world: World) -> str:
    """What of the server's settings makes a commit durable, as the server says."""
    names = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")
    with psycopg.connect(world.postgres.url) as connection:
        found = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(names)]
        ).fetchall()
    return json.dumps(dict(found))
