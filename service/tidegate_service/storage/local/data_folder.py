"""The folder that the service keeps its own things in: the embedded Postgres, the default
warehouse."""

import stat
from pathlib import Path

from tidegate_service.core.errors import StorageUnavailable


def make_data_folder(folder: Path, *, mode: int, warehouse: bool) -> None:
    """Make the folder where it is missing, and a warehouse in it. A folder that is there gets the
    mode as well: an earlier release, or `mkdir`, left it open to everybody.

    Raises `StorageUnavailable` where that cannot be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != mode:
            folder.chmod(mode)
        if warehouse:
            (folder / "warehouse").mkdir(mode=mode, exist_ok=True)
    except OSError as error:
        raise StorageUnavailable(
            f"the data folder {folder} cannot be made with the mode {mode:04o}: {error.strerror}; "
            "choose another --data-dir, or the --data-dir-mode that it has"
        ) from error
