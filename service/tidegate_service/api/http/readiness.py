"""Whether the instance can take a commit, found out once for all who ask."""

import asyncio
from collections.abc import Awaitable, Callable

from tidegate_service.core.errors import ServiceError


class Readiness:
    """One check at a time, however many ask. Of one event loop."""

    def __init__(self, check: Callable[[], Awaitable[None]], *, kept_s: float) -> None:
        """`check` raises a `ServiceError` where it cannot. An answer stands for `kept_s`."""
        self._kept_s = kept_s
        self._check = check
        self._checking = asyncio.Lock()
        self._told: ServiceError | None = None
        self._until = 0.0

    async def ask(self) -> None:
        """Raises what the check raised."""
        async with self._checking:
            now = asyncio.get_running_loop().time
            if now() >= self._until:
                self._told = await self._found()
                self._until = now() + self._kept_s
            told = self._told
        if told is not None:
            # Raised to many: it would keep the frames of all of them.
            raise told.with_traceback(None)

    async def _found(self) -> ServiceError | None:
        try:
            await self._check()
        except ServiceError as error:
            return error
        return None
