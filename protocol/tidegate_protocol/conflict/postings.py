"""Which of a table's newest commits hold a key: versions by partition, by path, by application."""

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)

MOST_MISPLACED = 1_000
"""To look at so many takes a tenth of a millisecond, to sort a hundred thousand takes fifty."""


class Postings(Generic[_Key]):
    """Versions by key, each list in ascending order.

    Commits come in and are taken back at the newest end and forgotten at the oldest, always with
    the same keys: whoever holds the commits makes them from the commit. Keys without a version
    are not kept. Up to `most_misplaced` keys of commits that were taken back are looked at one by
    one, before all are sorted.
    """

    def __init__(self, *, most_misplaced: int = MOST_MISPLACED) -> None:
        # In the order of their newest version, so that the keys of the newest commits are last.
        self._versions: dict[_Key, list[int]] = {}
        # But for these, which stand where a newer version was that is taken back.
        self._misplaced: set[_Key] = set()
        self._most_misplaced = most_misplaced
        self.versions: list[int] = []
        """Every version that holds a key, in order."""

    def append(self, version: int, keys: Collection[_Key]) -> None:
        """A commit newer than all others holds these keys, each named once."""
        if not keys:
            return
        self.versions.append(version)
        for key in keys:
            versions = self._versions.pop(key, None) or []
            versions.append(version)
            self._versions[key] = versions
        self._misplaced.difference_update(keys)

    def drop(self, version: int, keys: Collection[_Key]) -> None:
        """Takes the newest commit back, which held these keys."""
        if not keys:
            return
        _expect(version, self.versions.pop())
        for key in keys:
            versions = self._versions[key]
            _expect(version, versions.pop())
            self._misplaced.add(key)
            if not versions:
                self._remove(key)

    def restore_order(self) -> None:
        """To be called after the last of some calls of `drop`."""
        if len(self._misplaced) > self._most_misplaced:
            self._versions = dict(sorted(self._versions.items(), key=lambda item: item[1][-1]))
            self._misplaced.clear()

    def forget(self, version: int, keys: Collection[_Key]) -> None:
        """Forgets the oldest commit, which held these keys."""
        if not keys:
            return
        _expect(version, self.versions.pop(0))
        for key in keys:
            versions = self._versions[key]
            _expect(version, versions.pop(0))
            if not versions:
                self._remove(key)

    def any_after(self, after: int) -> bool:
        """Whether a version above this one holds any key."""
        return bool(self.versions) and self.versions[-1] > after

    def keys_after(self, after: int) -> Iterator[_Key]:
        """The keys that a version above this one holds, each once."""
        misplaced = self._misplaced
        for key in misplaced:
            if self._versions[key][-1] > after:
                yield key
        for key, versions in reversed(self._versions.items()):
            if key in misplaced:
                continue
            if versions[-1] <= after:
                return
            yield key

    def _remove(self, key: _Key) -> None:
        del self._versions[key]
        self._misplaced.discard(key)

    def held(self, keys: Collection[_Key]) -> Collection[_Key]:
        """Those of the keys that any version holds; takes time by the fewer of the two."""
        return self._versions.keys() & keys

    def of(self, key: _Key) -> Sequence[int]:
        """The versions that hold the key, in order."""
        return self._versions[key]


def tail(versions: Sequence[int], after: int) -> Sequence[int]:
    """Those of the ascending versions that are above this one."""
    return versions[bisect_right(versions, after) :]


def _expect(version: int, found: int) -> None:
    if version != found:
        raise ValueError(f"expected version {version}, found {found}")
