"""The actions of a body, gathered a text of lines at a time."""

from collections.abc import Mapping, Sequence
from sys import getsizeof

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.spooled import SpooledAdd, SpooledRemove
from tidegate_service.api.bodies.decoding import MAX_ACTION_BYTES, decode_actions
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.files.compressed_lines import Spool

FEW = 64
"""So many are decoded one by one, and keep their bytes."""
_ACTION_BYTES = 512
"""What an action of a long body takes in memory, roughly, beside its compressed bytes."""
_USUAL_PATH = 100
"""The length of a path that is in the estimate."""
MAX_STORED_BYTES = 512 * 1024 * 1024
"""Most that a commit may take when it is compressed. The index holds it in one value, and Postgres
has none of a gigabyte."""


class ActionLines:
    """Decodes lines as strictly as `decode_actions`; `max_actions` bounds how many there are."""

    def __init__(self, *, max_actions: int) -> None:
        self._max_actions = max_actions
        self._spool = Spool()
        self._bulk = BulkDecoder(self._spool.keep)
        self._actions: list[Action] = []
        self._lines = 0
        self._held = 0
        self._values: set[int] = set()

    @property
    def size(self) -> int:
        """What is held, in bytes, roughly."""
        return self._held + self._spool.stored_bytes

    def add(self, text: bytes) -> None:
        """Lines that each end with a newline; blank ones are passed over.

        Raises `BadRequest` (`invalid-action`) that points at the first action that is none, and
        `Refused` (`too-large`).
        """
        # Blank lines cost nothing but time; they are bounded with the others.
        self._lines += text.count(b"\n")
        self._check_count(self._lines)
        if text.count(b"\n") > FEW and len(text) <= MAX_ACTION_BYTES:
            found = self._bulk.decode(text)
            if found is not None:
                self._take(found)
                return
        self._each([line for line in text.split(b"\n") if line.strip()])

    def add_each(self, lines: Sequence[bytes]) -> None:
        """Texts of one action each, which may go over several lines. Raises as `add`."""
        if len(lines) > FEW and max(map(len, lines)) <= MAX_ACTION_BYTES:
            found = self._bulk.decode(b"\n".join([*lines, b""]))
            if found is not None:
                self._take(found)
                return
        self._each(lines)

    def _each(self, lines: Sequence[bytes]) -> None:
        actions = decode_actions(lines, first=len(self._actions))
        many = len(self._actions) + len(actions) > FEW
        self._take(self._bulk.keep(actions) if many else actions)

    def all(self) -> tuple[Action, ...]:
        return tuple(self._actions)

    def _take(self, actions: Sequence[Action]) -> None:
        self._actions += actions
        self._held += sum(map(self._weight, actions))
        if self._spool.stored_bytes > MAX_STORED_BYTES:
            raise Refused(
                f"the actions take more than {MAX_STORED_BYTES} bytes compressed; no commit may",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )

    def _weight(self, action: Action) -> int:
        """What an action takes beside its compressed bytes."""
        if not isinstance(action, Add | Remove):
            return _ACTION_BYTES + 2 * len(action.raw)
        weight = _ACTION_BYTES
        if not isinstance(action, SpooledAdd | SpooledRemove):
            weight += len(action.raw) + getsizeof(action.stats)
        if action.tags:
            weight += _size_of(action.tags)
        if len(action.path) > _USUAL_PATH:
            weight += getsizeof(action.path)
        values = action.partition_values
        # Those of many files are shared.
        if values and id(values) not in self._values:
            self._values.add(id(values))
            weight += _size_of(values)
        return weight

    def _check_count(self, lines: int) -> None:
        if lines > self._max_actions:
            raise Refused(
                f"there are more than {self._max_actions} actions, which is as many as are taken",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )


def _size_of(texts: Mapping[str, str | None]) -> int:
    return sum(getsizeof(name) + getsizeof(text) for name, text in texts.items())
