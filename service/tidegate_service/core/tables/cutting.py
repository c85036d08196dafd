"""What predicates and columns leave of a version's files, in pieces beside others' requests."""

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import msgspec

from tidegate_protocol.log.spooled import statistics_in
from tidegate_protocol.scan.predicates import go_on, work_of
from tidegate_protocol.scan.pruning import Pruning
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.ports.files.scanned import StoredFiles, Wanted
from tidegate_service.core.sharing.pools import Rests, Share

T = TypeVar("T")
Pause = Callable[[], None]

_INLINE = 1_000
"""Work (`work_of`) on files that is done in a millisecond or so."""
_INLINE_BYTES = 256 * 1024
"""So much of log lines, or of partition values, is looked through in as long."""
_AT_ONCE = 20_000
"""The work that a thread does before others have their turn, or nothing more is done because the
caller has gone."""
_OF_A_FILE = 10
"""The work on a file without predicates."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_NULL = b"null"


class _Piece(NamedTuple):
    places: range
    work: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What is left of the index's files for a reader. `terms` are those of all predicates; `share`
    is whose threads test them, and `rests` makes what they call between two files."""

    pruning: Pruning | None
    terms: int
    share: Share
    columns: frozenset[str] | None
    paths: DataPaths
    rests: Callable[[], Pause] = Rests

    @property
    def wanted(self) -> Wanted:
        if self.pruning is None:
            return Wanted()
        return Wanted(
            partitions=self._needed_partitions if self.pruning.by_partition else None,
            with_statistics=self.pruning.by_file,
        )

    async def in_pieces(self, batch: StoredFiles) -> AsyncIterator[Sequence[bytes]]:
        """What is left of the batch, made in turn with what others ask for."""
        for piece in self._pieces(batch.partitions or [""] * len(batch)):
            part = batch.between(piece.places)
            lines = await self._run(partial(self._lines, part), piece.work, part.actions)
            if lines:
                yield lines

    async def _needed_partitions(self, values: Sequence[str]) -> Sequence[bool]:
        needed: list[bool] = []
        for piece in self._pieces(values):
            part = values[piece.places.start : piece.places.stop]
            needed += await self._run(partial(self._needed, part), piece.work, part)
        return needed

    def _pieces(self, partitions: Sequence[str]) -> Iterator[_Piece]:
        """The places of files with these partition values, as many at a time as are tested at
        once."""
        through = list(
            accumulate(_OF_A_FILE + work_of(self.terms, len(values)) for values in partitions)
        )
        start = done = 0
        while start < len(through):
            stop = max(start + 1, bisect_right(through, done + _AT_ONCE))
            yield _Piece(range(start, stop), through[stop - 1] - done)
            start, done = stop, through[stop - 1]

    async def _run(
        self,
        test: Callable[[Pause], T],
        work: int,
        looked_through: Sequence[bytes] | Sequence[str],
    ) -> T:
        if work <= _INLINE and sum(map(len, looked_through)) <= _INLINE_BYTES:
            return test(go_on)
        # Elsewhere, so that thousands of files, or giant ones, do not hold up everybody's requests.
        return await self.share.run(lambda: test(self.rests()))

    def _needed(self, values: Sequence[str], pause: Pause) -> list[bool]:
        assert self.pruning is not None
        needed = list[bool]()
        for each in values:
            pause()
            needed.append(self.pruning.needs_partition(each))
        return needed

    def _lines(self, batch: StoredFiles, pause: Pause) -> Sequence[bytes]:
        if self.pruning is not None and self.pruning.by_file:
            stats = _statistics(batch)
            batch = batch.some(self.pruning.needed(batch.partitions, stats, pause=pause))
        self.paths.check_stored(batch)
        if self.columns is None:
            return batch.actions
        return [_narrowed(line, self.columns) for line in batch.actions]


def _statistics(batch: StoredFiles) -> Sequence[str | None]:
    return [
        statistics_in(line) if known is None else known
        for known, line in zip(batch.stats, batch.actions, strict=True)
    ]


def _narrowed(line: bytes, columns: frozenset[str]) -> bytes:
    """The line with the statistics of these columns only; unchanged where it has no statistics that
    can be read."""
    body = _FIELDS.decode(_FIELDS.decode(line)["add"])
    try:
        statistics = _FIELDS.decode(_TEXT.decode(body.get("stats", _NULL)))
        cut: dict[str, object] = dict(statistics)
        for part in ("minValues", "maxValues", "nullCount"):
            if bytes(statistics.get(part, _NULL)) != _NULL:
                of_columns = _FIELDS.decode(statistics[part])
                cut[part] = {k: v for k, v in of_columns.items() if k in columns}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line
    return msgspec.json.encode({"add": {**body, "stats": msgspec.json.encode(cut).decode()}})
