"""What landed before an index was made anew, beside what its log holds now."""

from dataclasses import replace

from tests.simulation.ports.rows import Rows
from tidegate_service.core.ports.records import CommitRecord


def rewritten(rows: Rows) -> int | None:
    replaced = (old.version for old in (rows.aside or {}).values() if is_replaced(rows, old))
    return min(replaced, default=None)


def restore_ids(rows: Rows) -> list[tuple[int, str]]:
    lost = []
    for transaction_id, old in (rows.aside or {}).items():
        version = holder(rows, transaction_id, old)
        if is_gone(rows, old):
            if version is None:
                lost.append((old.version, transaction_id))
                rows.tombstones.setdefault(transaction_id, None)
            continue
        if version is None:
            rows.past[transaction_id] = old
        else:
            answer_as(rows, old)
    rows.aside = None
    return sorted(lost)


def holder(rows: Rows, transaction_id: str, old: CommitRecord) -> int | None:
    """The version that has the id of what landed before; one that only claims it loses it."""
    version = rows.ids.get(transaction_id)
    if version is None or version == old.version:
        return version
    found = rows.commit(version)
    if is_gone(rows, old) and found and found.record.body_digest is not None:
        return version
    rows.take_id(transaction_id)
    return None


def is_gone(rows: Rows, old: CommitRecord) -> bool:
    """Whether what landed is behind the head now, or its version has other bytes."""
    return old.version > rows.record.latest_version or is_replaced(rows, old)


def is_replaced(rows: Rows, old: CommitRecord) -> bool:
    now = rows.commit(old.version)
    both = (None if now is None else now.record.content_sha256, old.content_sha256)
    return None not in both and both[0] != both[1]


def answer_as(rows: Rows, old: CommitRecord) -> None:
    """A version is told of as before, with what its file does not tell."""
    found = rows.commit(old.version)
    assert found is not None, "it has the id"
    attempts, duration_ms = old.metrics.attempts, old.metrics.duration_ms
    metrics = replace(found.record.metrics, attempts=attempts, duration_ms=duration_ms)
    by = {"principal": old.principal, "request_id": old.request_id}
    rows.rewrite(old.version, metrics=metrics, **by)
