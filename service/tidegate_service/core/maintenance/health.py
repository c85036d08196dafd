"""Is this instance able to take a commit?"""

from tidegate_service.core.context import Context


async def check_ready(context: Context) -> None:
    """Raises `IndexUnavailable` or `StorageUnavailable` where it is not."""
    await context.index.ping()
    await context.storage.probe()
