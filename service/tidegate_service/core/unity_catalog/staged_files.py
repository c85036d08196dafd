"""Reading what a client has staged: the bytes that are to become a version, seen once.

A request of some hundred bytes may name a file of megabytes, of which half a million actions are
made. So nothing is read of a file that is longer than was said, and of what is long a principal has
a few at a time, from before they are read until they are decided on.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import staged_version
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.replay.staged import read_staged
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.unity_catalog.requests import AddCommit

T = TypeVar("T")

SHORT_BYTES = 16 * 1024
"""An append of some tens of files. Its actions take half a megabyte at most, and it waits for no
turn."""
_ACTIVITY = "read a staged file"


def check_name(commit: AddCommit) -> None:
    """Raise `Refused` unless the file's name is one in `_staged_commits`, of the version."""
    version = staged_version(commit.file_name)
    if version is None:
        raise _refused(
            f"the file name {excerpt(commit.file_name)} is not <version of 20 digits>.<uuid>.json"
        )
    if version != commit.version:
        raise _refused(f"the file {commit.file_name} is of version {version}, not {commit.version}")


async def in_own_turn(
    context: Context,
    table: TableHead,
    commit: AddCommit,
    work: Callable[[], Coroutine[Any, Any, T]],
) -> T:
    """What `work` returns that holds the staged file, or raises. It waits for the principal's turn
    where the file is long, and goes on where the caller leaves."""
    if commit.file_size <= SHORT_BYTES:
        return await work()
    key = (_ACTIVITY, f"{table.id} {commit.file_name}")
    return await in_turn(context, context.staged, key, work)


async def content_of(
    context: Context, table: TableHead, commit: AddCommit
) -> bytes | LogFile | None:
    """The bytes of the staged file, whose name was checked; None where there is none. One that is
    longer than was said has its length alone. Raises `StorageUnavailable`."""
    log = context.storage.log(table.location, who=context.who)
    return await log.read_staged(commit.file_name, most_bytes=commit.file_size)


async def staged_of(commit: AddCommit, content: bytes | LogFile) -> StagedCommit:
    """The commit, checked against what was said of its file. Raises `Refused`."""
    if len(content) != commit.file_size:
        raise _refused(
            f"the staged file {commit.file_name} has {len(content)} bytes; expected "
            f"{commit.file_size}, as was said of it"
        )
    read = partial(read_staged, commit.file_name, content)
    staged = await offload.run(offload.weight_of_log(content), read)
    if isinstance(staged, Invalid):
        raise Refused(staged.detail, code=staged.code)
    if staged.timestamp != commit.timestamp:
        raise _refused(
            f"the staged file {commit.file_name} has the inCommitTimestamp {staged.timestamp}; "
            f"expected {commit.timestamp}, as was said of it"
        )
    return staged


def missing(commit: AddCommit) -> Refused:
    return _refused(
        f"there is no staged file {commit.file_name} in the table's _delta_log/_staged_commits"
    )


def _refused(detail: str) -> Refused:
    return Refused(detail, code=Code.INVALID_REQUEST)
