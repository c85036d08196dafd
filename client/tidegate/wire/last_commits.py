"""What was committed last through a connection."""

import threading


class LastCommits:
    """The latest version of each table that was committed. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[str, int] = {}

    def note(self, table_id: str, version: int) -> None:
        """Record a commit. Answers may overtake each other; a table's versions only grow."""
        with self._lock:
            self._versions[table_id] = max(version, self._versions.get(table_id, version))

    def of(self, table_id: str) -> int | None:
        """The latest version that was recorded, None for none."""
        with self._lock:
            return self._versions.get(table_id)
