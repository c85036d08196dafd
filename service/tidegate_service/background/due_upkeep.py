"""What upkeep is due and not begun, as a caretaker has found it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress

from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.upkeep.upkeep import Due, Page, UpkeepIndex

LOOKS_SHARE = 0.5
"""Of the time, at most, for looks at pages of tables, where they are quicker than the interval."""

_Found = dict[tuple[str, str], Due]
"""By table and kind."""


class DueUpkeep:
    """Of one caretaker. A look is at `tables` of them, the next ones in their order, and at those
    that were woken. Looks at pages have `share` of the time, and are `interval_s` apart at most."""

    def __init__(
        self,
        upkeep: UpkeepIndex,
        kinds: Collection[str],
        *,
        tables: int,
        share: float,
        interval_s: float,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._upkeep = upkeep
        self._kinds = list(kinds)
        self._tables = tables
        self._share = min(share, LOOKS_SHARE)
        self._interval_s = interval_s
        self._monotonic_s = monotonic_s
        self._after: str | None = None
        self._woken: set[str] = set()
        # The last page's, and that of woken tables, which stays over pages: where there are many
        # tables, the page that has a woken one comes late.
        self._of_page: _Found = {}
        self._of_woken: _Found = {}
        self._next_page_s = self._again_s = monotonic_s()
        self._wake = asyncio.Event()

    def wake(self, table_id: str) -> None:
        """Have the table looked at with the next ones."""
        if len(self._woken) < self._tables:
            self._woken.add(table_id)
        self._wake.set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known that could be begun, or looked at anew."""
        return not (self._woken or self._of_page or self._of_woken)

    async def find(self) -> Sequence[Due]:
        """What was found and not begun. A page of tables costs the index much, so looks at pages
        rest like other work, and in between only what was woken is looked at. Raises
        `ServiceError`."""
        began = self._monotonic_s()
        try:
            if began >= self._next_page_s:
                await self._find_in_page(since_s=began)
            elif self._woken and began >= self._again_s:
                await self._find_woken()
        except ServiceError:
            # Waking a table is no reason to ask an index again that does not answer.
            self._next_page_s = self._again_s = self._monotonic_s() + self._interval_s
            raise
        return list((self._of_woken | self._of_page).values())

    async def _find_in_page(self, *, since_s: float) -> None:
        self._of_page = found = _by_work(await self._page(some=True))
        # The page is newer, and the next one is of other tables.
        self._of_woken |= {key: due for key, due in found.items() if key in self._of_woken}
        ended = self._monotonic_s()
        rest_s = rest_after(ended - since_s, self._share)
        self._next_page_s = ended + min(rest_s, self._interval_s)

    async def _find_woken(self) -> None:
        if len(self._of_woken) >= self._tables:
            # Pages bring them again.
            self._of_woken.clear()
        woken = _by_work((await self._due(after=None, limit=0, some=True)).due)
        self._of_woken |= woken
        self._of_page = {key: due for key, due in self._of_page.items() if key not in woken}

    def begin(self, due: Due) -> None:
        """It is found no more before another look."""
        for found in (self._of_page, self._of_woken):
            found.pop((due.table_id, due.kind), None)

    async def pages(self) -> AsyncIterator[Sequence[Due]]:
        """All that is due of all tables, page by page."""
        self._after = None
        while True:
            yield await self._page(some=False)
            if self._after is None:
                return

    async def woken(self, *, within_s: float) -> None:
        """Wait until somebody wakes a table, for so long at most."""
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wake.wait()

    async def _page(self, *, some: bool) -> Sequence[Due]:
        page = await self._due(after=self._after, limit=self._tables, some=some)
        self._after = page.last
        return page.due

    async def _due(self, *, after: str | None, limit: int, some: bool) -> Page:
        """Of a page of tables, and of those that were woken since it was asked for last."""
        woken, self._woken = self._woken, set()
        try:
            return await self._upkeep.due(
                self._kinds, after=after, also=sorted(woken), limit=limit, some=some
            )
        except ServiceError:
            self._woken |= woken
            raise


def rest_after(took_s: float, share: float) -> float:
    """How long to rest after what took so long, for it to have this share of the time."""
    return took_s * (1 - share) / share


def _by_work(due: Sequence[Due]) -> _Found:
    return {(each.table_id, each.kind): each for each in due}
