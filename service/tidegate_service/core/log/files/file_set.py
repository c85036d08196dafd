"""Whether two snapshots have the same files, however many these are."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from tidegate_protocol.log.actions import Action, Add, file_key
from tidegate_service.core.sharing import offload


@dataclass(slots=True)
class FileSet:
    """A set of files, whatever their order, in constant memory."""

    number: int = 0
    digest: int = 0

    async def count(self, actions: Sequence[Action]) -> None:
        """Take up each file once."""
        await offload.run(len(actions), self._count, actions)

    def _count(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Add):
                key = repr(file_key(action)).encode("utf-8", "surrogatepass")
                self.number += 1
                self.digest = (self.digest + int.from_bytes(sha256(key).digest())) % 2**256
