"""What holds after every step: the promises, from the index's rows and the log's bytes.

`Memory` keeps what was seen and answered, apart from the ledger: it would notice if service and
ledger broke a promise together.
"""

import hashlib
import itertools
import json
from collections.abc import Mapping

from tests.service.machine.model import Model, Table
from tests.service.machine.seen import Rows
from tidegate_protocol.ledger.state import IdState, TableLedger
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.codec import encode
from tidegate_protocol.replay.snapshot import Snapshot

Id = tuple[str, str]
Answer = Mapping[str, object]

STABLE = ("version", "timestamp", "read_version", "isolation_level", "is_blind_append")
"""What every answer to a transaction that landed says alike."""


class Memory:
    def __init__(self) -> None:
        self._bytes: dict[tuple[str, int], bytes] = {}
        self._heads: dict[str, tuple[int, int]] = {}
        self._landed: dict[Id, Answer] = {}
        self._refused: dict[tuple[str, str, str], int] = {}

    def answered(self, table: Table, transaction_id: str, digest: str, status: int, body: Answer):
        """Remember an answer, and hold it against earlier ones (I5, I6)."""
        key = (table.id, transaction_id)
        if status in (200, 201) and body["version"] is not None:
            stable = {name: body[name] for name in STABLE}
            assert self._landed.setdefault(key, stable) == stable, "a replay that differs"
            earlier = self._refused.get((*key, digest))
            assert earlier is None, f"landed after it was answered {earlier}"
        elif status in (409, 410, 422):
            self._refused.setdefault((*key, digest), status)

    def check(self, table: Table, rows: Rows, files: Mapping[int, bytes]) -> None:
        head, published = rows.head.latest_version, rows.head.published_version
        before = self._heads.get(table.id, (-1, -1))
        assert before[0] <= head, "the head went back"
        assert before[1] <= published, "the published version went back"
        self._heads[table.id] = (head, published)
        for version, content in files.items():
            first = self._bytes.setdefault((table.id, version), content)
            assert first == content, f"the file of version {version} has changed"
        for row in rows.commits:
            if row.transaction_id is None:
                continue
            key = (table.id, row.transaction_id)
            refused = self._refused.get((*key, row.body_digest or ""))
            assert refused is None, f"version {row.version} was answered {refused} and landed"
            stable = self._landed.get(key)
            if stable is not None:
                assert (row.version, row.timestamp) == (stable["version"], stable["timestamp"])
        for key in self._landed.keys() - {(table.id, row.transaction_id) for row in rows.commits}:
            assert key[0] != table.id, f"{key[1]} was answered for and is not there"


def check_index(model: Model, table: Table, rows: Rows) -> None:
    """The index is what the ledger says, at every version."""
    known = model.of(table)
    versions = [row.version for row in rows.commits]
    assert versions == list(range(known.latest_version + 1)), f"{versions}, not {known}"
    for row, commit in zip(rows.commits, known.commits, strict=True):
        assert row.content_sha256 == hashlib.sha256(commit.content).hexdigest()
        found = (row.timestamp, row.transaction_id, row.body_digest)
        assert found == (commit.timestamp, commit.transaction_id, commit.body_digest), row.version
        assert row.is_foreign == (commit.body_digest is None)
        assert row.version <= known.published_version or not row.published
        assert rows.live(row.version) == _lines(commit.snapshot), f"files of {row.version}"
    assert all(a.timestamp < b.timestamp for a, b in itertools.pairwise(rows.commits))
    _check_head(known, rows)
    latest = known.snapshot(known.latest_version)
    assert sorted(rows.txns) == sorted(map(encode, latest.txns.values()))
    assert sorted(rows.domains) == sorted(map(encode, latest.domains.values()))
    ids = known.transactions.items()
    assert rows.aborted == {id_ for id_, what in ids if what is IdState.ABORTED}


def check_log(model: Model, table: Table, files: Mapping[int, bytes]) -> None:
    """The log is the published versions, and what others put behind them (I7)."""
    known = model.of(table)
    expected = {
        commit.version: commit.content for commit in known.commits[: known.published_version + 1]
    }
    expected |= known.strays
    first = known.latest_version + 1
    expected |= dict(enumerate(table.waiting, start=first))
    assert files.keys() == expected.keys()
    for version, content in expected.items():
        assert files[version] == content, f"the log's version {version}"


def _check_head(known: TableLedger, rows: Rows) -> None:
    head, snapshot = rows.head, known.snapshot(known.latest_version)
    assert head.latest_version == known.latest_version
    assert head.published_version == known.published_version
    assert head.latest_timestamp == known.latest_timestamp
    assert (head.state == "quarantined") == (known.quarantine_reason is not None)
    assert head.num_files == len(snapshot.files)
    assert head.size_bytes == sum(add.size for add in snapshot.files.values())
    assert snapshot.protocol is not None
    assert snapshot.metadata is not None
    assert head.protocol == encode(snapshot.protocol)
    assert head.metadata == encode(snapshot.metadata)


def scanned(files: list[dict[str, object]], snapshot: Snapshot) -> None:
    """A scan's files are the snapshot's, in the order of their paths."""
    expected = [json.loads(encode(add)) for add in _sorted(snapshot)]
    assert files == expected


def _sorted(snapshot: Snapshot) -> list[Add]:
    keys = sorted(snapshot.files, key=lambda key: (key[0].encode(), (key[1] or "").encode()))
    return [snapshot.files[key] for key in keys]


def _lines(snapshot: Snapshot) -> dict[object, bytes]:
    return {key: encode(add) for key, add in snapshot.files.items()}
