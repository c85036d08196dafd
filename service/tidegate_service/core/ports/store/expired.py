"""Deleting what has expired of a log: the one thing that deletes, and all that it can delete.

A name is checked here against the grammar of the protocol, not by whoever asks. So no defect of the
clean-up can reach a data file, a version that is kept, or what nobody knows.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from tidegate_service.core.ports.store.listing import LogEntry


class DeletionRefused(Exception):
    """The store, or the file system, does not let this service delete; the message says why."""


class ExpiredLog(Protocol):
    """The expired files of one table's `_delta_log`. A call that meets a broken store raises
    `StorageUnavailable`: some of the files may be gone. What is gone already is no error."""

    async def remove(self, names: Sequence[str], *, below: int) -> None:
        """Delete commits, checkpoints, checksums and compacted files of versions below one, in
        this order as far as the store knows an order. A compacted file is of its first version.

        Raises `ValueError`, with nothing deleted, where one of the names is anything else, and
        `DeletionRefused`.
        """
        ...

    def sidecars(self) -> AsyncIterator[Sequence[LogEntry]]:
        """What lies directly in `_sidecars`, in batches: the first of it, where it is more than is
        listed of a log."""
        ...

    async def remove_sidecars(self, names: Sequence[str]) -> None:
        """Delete files of `_sidecars`. Raises `ValueError`, with nothing deleted, where one of the
        names is no sidecar's, and `DeletionRefused`."""
        ...
