"""Spark jobs under a transaction id of their own, done again when nobody knows how they went.

The client's real rules over data files in memory: where a transaction's files lie, what of them
counts and what is deleted (`tidegate.spark`). Spark's sink itself is played: it writes a file of a
random name and a manifest, unless a manifest of that batch is there.
"""

import json
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.chaos.judging.history import Work
from tests.simulation.ports.store import Folder
from tests.simulation.worlds.works import APPENDED, TABLE, add, parsed
from tidegate.spark.data_files.direct_write import take_manifest
from tidegate.spark.storage.locations import StoredFile
from tidegate.spark.tables.layout import new_folder
from tidegate_protocol.log.paths import encode
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_protocol.replay.snapshot import Snapshot

URL = "s3a://lake/table"
MANIFEST = "_spark_metadata/0"


@dataclass(slots=True)
class DataFiles:
    """`spark.storage.locations.DataStore` in memory: what a location holds beside its log."""

    held: dict[str, bytes] = field(default_factory=dict)
    are_written: bool = False
    """Whether any ever was, deleted or not."""

    def files(self, folder: str) -> list[StoredFile]:
        return [
            StoredFile(path=path, size=len(content), modification_time=1)
            for path, content in sorted(self.held.items())
            if path.startswith(f"{folder}/")
        ]

    def content(self, file: StoredFile) -> bytes:
        return self.held[file.path]

    def delete(self, path: str) -> None:
        self.held.pop(path, None)

    def delete_folder(self, folder: str) -> None:
        for path in [path for path in self.held if path.startswith(f"{folder}/")]:
            del self.held[path]


def folder_of(transaction_id: str, run: int) -> str:
    """The folder of one run: the client's, but what is drawn for it is the run's number, so that a
    world that is repeated has the same."""
    return f"{new_folder(transaction_id).rpartition('.')[0]}.{run}"


def write(
    data: DataFiles, transaction_id: str, name: str, *, run: int
) -> tuple[str, list[StoredFile]]:
    """One run of the job: its folder, and the files in it that count."""
    folder = folder_of(transaction_id, run)
    manifest = f"{folder}/{MANIFEST}"
    if manifest not in data.held:
        path = f"{folder}/{name}.parquet"
        data.held[path] = b"rows"
        data.are_written = True
        line = json.dumps({"path": quote(f"{URL}/{path}")})
        data.held[manifest] = f"v1\n{line}".encode()
    return folder, take_manifest(data, folder, URL)  # type: ignore[arg-type]


def proposed(transaction_id: str, files: list[StoredFile]) -> tuple[Work, Proposal]:
    paths = [encode(file.path) for file in files]
    work = Work(table=TABLE, id=transaction_id, adds=tuple((path, APPENDED) for path in paths))
    proposal = Proposal(
        transaction_id=transaction_id,
        operation="WRITE",
        actions=tuple(add(path, APPENDED) for path in paths),
    )
    return work, proposal


def missing(data: DataFiles, folder: Folder) -> list[str]:
    """Files that the table has by its log, and that somebody deleted."""
    snapshot = Snapshot()
    for version in range(folder.end + 1):
        written = folder.written.get(version)
        if written is None:
            break
        snapshot = snapshot.apply(version, parsed(written[0]))
    return [
        path for path, _ in snapshot.files if path.endswith(".parquet") and path not in data.held
    ]
