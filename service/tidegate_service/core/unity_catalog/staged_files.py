"""Reading what a client has staged: the bytes that are to become a version, seen once."""

from functools import partial

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
from tidegate_service.core.unity_catalog.requests import AddCommit


def check_name(commit: AddCommit) -> None:
    """Raise `Refused` unless the file's name is one in `_staged_commits`, of the version."""
    version = staged_version(commit.file_name)
    if version is None:
        raise _refused(
            f"the file name {excerpt(commit.file_name)} is not <version of 20 digits>.<uuid>.json"
        )
    if version != commit.version:
        raise _refused(f"the file {commit.file_name} is of version {version}, not {commit.version}")


async def content_of(
    context: Context, table: TableHead, commit: AddCommit
) -> bytes | LogFile | None:
    """The bytes of the staged file, whose name was checked; None where there is none. Raises
    `StorageUnavailable`."""
    return await context.storage.log(table.location, who=context.who).read_staged(commit.file_name)


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
