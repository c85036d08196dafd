"""A table's past: its commits, and the bytes of each version."""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import Content, sha256_of
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.log.log_file import OversizedFile
from tidegate_service.core.ports.records import CommitRecord, TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import get_head


async def history(
    context: Context, ref: str, *, from_version: int | None, to_version: int | None, limit: int
) -> tuple[TableHead, list[CommitRecord]]:
    """Commits between two versions (both included; open where None), newest first."""
    table = await get_head(context, ref)
    # Those that come meanwhile are behind the head that may be told.
    last = table.latest_version if to_version is None else min(to_version, table.latest_version)
    commits = await context.index.history(
        table.id, from_version=from_version, to_version=last, limit=limit
    )
    return table, commits


async def content(context: Context, ref: str, version: int) -> Content:
    """The bytes of `<version>.json`: from the index while they are held there, else from storage,
    and from the index again where they are gone from there, or are not what was ratified of a
    catalog-managed table. Raises `NotFound`
    (`version-not-found`)."""
    table = await get_head(context, ref)
    if table.first_version <= version <= table.latest_version:
        # Inline bytes may be forgotten between the two look-ups, but only once they are
        # published, so the second one finds them.
        held = await context.index.content(table.id, version)
        if held is None:
            found = await context.storage.log(table.location, who=context.who).read(version)
            if isinstance(found, OversizedFile):
                raise NotFound(
                    f"the file of version {version} of table {table.name} is not what was "
                    f"committed: {found.why}",
                    code=Code.VERSION_NOT_FOUND,
                )
            record = await context.index.commit(table.id, version)
            ratified = None if record is None or found is None else record.content_sha256
            if found is not None and (
                not table.catalog_managed or ratified in (None, await offload.sha256_of(found))
            ):
                return found
            kept = await context.index.stored_content(table.id, version)
            if record and kept is not None:
                threads = context.verify_threads.of(context.caller.name)
                if await threads.run(sha256_of, kept) == record.content_sha256:
                    # Clean-up took the file, or it is lost, or others have replaced it.
                    return kept
        else:
            return held
        if version == table.first_version:
            raise NotFound(
                f"version {version} of table {table.name} is known from a checkpoint only; its "
                "commit was gone from the log when the table was registered",
                code=Code.VERSION_NOT_FOUND,
            )
    raise no_such_version(table, version)


def no_such_version(table: TableHead, version: int) -> NotFound:
    known = f"its latest is {table.latest_version}"
    if version < table.first_version:
        known = f"the first one that is held is {table.first_version}"
    return NotFound(
        f"table {table.name} has no version {version}; {known}", code=Code.VERSION_NOT_FOUND
    )
