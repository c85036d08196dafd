"""The actions of a body, gathered a text of lines at a time."""

from collections.abc import Sequence

from tidegate_protocol.actions import Action
from tidegate_protocol.bulk import BulkDecoder
from tidegate_protocol.problems import Code
from tidegate_service.api.decoding import MAX_ACTION_BYTES, decode_actions
from tidegate_service.core.errors import Refused
from tidegate_service.core.spool import Spool

FEW = 64
"""So many are decoded one by one, and keep their bytes."""
_ACTION_BYTES = 512
"""What an action of a long body takes in memory, roughly, beside its compressed bytes."""
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

    @property
    def size(self) -> int:
        """What is held, in bytes, roughly."""
        return len(self._actions) * _ACTION_BYTES + self._spool.stored_bytes

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
        self._take(self._bulk.keep(actions) if len(actions) > FEW else actions)

    def all(self) -> tuple[Action, ...]:
        return tuple(self._actions)

    def _take(self, actions: Sequence[Action]) -> None:
        self._actions += actions
        if self._spool.stored_bytes > MAX_STORED_BYTES:
            raise Refused(
                f"the actions take more than {MAX_STORED_BYTES} bytes compressed; no commit may",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )

    def _check_count(self, lines: int) -> None:
        if lines > self._max_actions:
            raise Refused(
                f"there are more than {self._max_actions} actions, which is as many as are taken",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )
