"""Deleting files of a local folder."""

import errno
import os
from collections.abc import Sequence

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.expired import DeletionRefused

_REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def remove(folder: int, names: Sequence[str]) -> None:
    """Delete these files of an open folder, one after the other; durable on return. Those that are
    not there are passed over. Raises `DeletionRefused` and `StorageUnavailable`."""
    try:
        for name in names:
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                continue
        os.fsync(folder)
    except OSError as error:
        why = error.strerror or type(error).__name__
        if error.errno in _REFUSALS:
            raise DeletionRefused(f"a file could not be deleted: {why}") from error
        raise StorageUnavailable(f"a file could not be deleted: {why}") from error
