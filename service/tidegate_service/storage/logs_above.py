"""Whether another table's log lies in a folder around a table's own."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.paths import LOG_FOLDER
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.local.files import NotAFolder
from tidegate_service.storage.log_names import holds_log
from tidegate_service.storage.roots import Root, holds, innermost

logger = logging.getLogger("tidegate.service")


async def log_above(
    roots: Sequence[Root],
    location: str,
    *,
    but: Collection[str],
    check: Callable[[Root], None],
    who: str,
) -> str | None:
    """The URL of the outermost folder around the location, of those that the roots have, in whose
    `_delta_log` anything of a log lies; None where there is none. Folders of `but` are passed over.
    `check` raises for a root that is not to be used, and the reads are in the turns of `who`. One
    such folder may keep many from what is below it, so the operator is told which it is.

    Raises `StorageUnavailable`, and `Refused` where such a folder's log cannot be looked at,
    since it is a link.
    """
    for folder in _around(roots, location):
        if folder in but:
            continue
        root = innermost(roots, folder)
        assert root is not None, "it is a folder that one of them has"
        check(root)
        log = f"{folder}/{LOG_FOLDER}".removeprefix(f"{root.url}/")
        try:
            is_log = await holds_log(root, log, root.reading.of(who))
        except (NotAFolder, UnreadableFile) as error:
            _tell(folder, location, str(error))
            raise Refused(
                f"the location cannot be used: {folder}/{LOG_FOLDER}: {error}",
                code=Code.INVALID_LOCATION,
            ) from error
        if is_log:
            _tell(folder, location, "files of a log lie there")
            return folder
    return None


def _tell(folder: str, location: str, why: str) -> None:
    logger.warning(
        "a log lies around a location, whose table is refused",
        extra={"log": f"{folder}/{LOG_FOLDER}", "location": location, "why": why},
    )


def _around(roots: Sequence[Root], location: str) -> Iterator[str]:
    """The folders that a root has, from the outermost one down to the location's parent."""
    parent, _, _ = location.rpartition("/")
    url = min((root.url for root in roots if holds(root, parent)), key=len)
    yield url
    for name in parent.removeprefix(url).split("/")[1:]:
        url = f"{url}/{name}"
        yield url
