"""What is really there: a table's rows in the index, read past the service, and its log."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row

from tidegate_protocol.log.actions import Add, file_key
from tidegate_protocol.log.codec import decode
from tidegate_protocol.replay.snapshot import FileKey

_HEAD = """
SELECT latest_version, published_version, latest_timestamp, state, num_files, size_bytes,
       protocol, metadata
FROM tables WHERE id = %s
"""
_COMMITS = """
SELECT version, timestamp, transaction_id, body_digest, content_sha256, is_foreign, published
FROM commits WHERE table_id = %s ORDER BY version
"""
_FILES = "SELECT added_version, removed_version, action FROM files WHERE table_id = %s"
_TXNS = "SELECT action FROM app_transactions WHERE table_id = %s"
_DOMAINS = "SELECT action FROM domain_metadata WHERE table_id = %s"
_ABORTED = "SELECT transaction_id FROM aborted_transactions WHERE table_id = %s"


@dataclass(frozen=True, slots=True)
class Rows:
    """One table in the index. `files` are (added, removed, action); actions are lines."""

    head: Any
    commits: list[Any]
    files: list[tuple[int, int | None, bytes]]
    txns: list[bytes]
    domains: list[bytes]
    aborted: frozenset[str]

    def live(self, version: int) -> dict[FileKey, bytes]:
        """The files of the version, by their keys."""
        found: dict[FileKey, bytes] = {}
        for added, removed, line in self.files:
            if added <= version and (removed is None or removed > version):
                action = decode(line)
                assert isinstance(action, Add)
                assert file_key(action) not in found, f"{action.path} is live twice at {version}"
                found[file_key(action)] = line
        return found


def rows(connection: psycopg.Connection[Any], table_id: str) -> Rows:
    """The table as it is committed now."""
    identity = (UUID(table_id),)
    with connection.cursor(row_factory=namedtuple_row) as cursor:

        def all_of(query: str) -> list[Any]:
            return cursor.execute(query, identity).fetchall()

        (head,) = all_of(_HEAD)
        return Rows(
            head=head,
            commits=all_of(_COMMITS),
            files=[tuple(row) for row in all_of(_FILES)],
            txns=[row.action for row in all_of(_TXNS)],
            domains=[row.action for row in all_of(_DOMAINS)],
            aborted=frozenset(row.transaction_id for row in all_of(_ABORTED)),
        )


def log(location: Path) -> dict[int, bytes]:
    """Every commit of the table's log by its version. Beside them are checksums at the most."""
    folder = location / "_delta_log"
    found = list(folder.iterdir()) if folder.is_dir() else []
    assert {path.suffix for path in found} <= {".json", ".crc"}
    return {int(path.stem): path.read_bytes() for path in found if path.suffix == ".json"}
