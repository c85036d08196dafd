"""Files of an object store that are put one after the other, in a thread of their own.

Each is begun the moment the store has said that the one before it is there: a thread that waits
for an answer goes on with it at once, while an event loop would first have its turn twice.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports import PutResult
from tidegate_service.storage.advice import advised
from tidegate_service.storage.failures import Failure, failure
from tidegate_service.storage.stores import Clients

SMALL = 256 * 1024
"""Bytes of a file that is put so: nothing beside the store's own time decides how long it takes."""
THREADS = 16


def put_answer(error: Exception, clients: Clients) -> PutResult:
    """What a PUT that failed with an error of obstore says: EXISTS, or it raises what
    `roots.Root.put_if_absent` does."""
    found = failure(error)
    if isinstance(error, AlreadyExistsError) and found.says_taken:
        return PutResult.EXISTS
    if found.refused:
        raise advised(
            StorageUnavailable(f"the object store could not write: {found}"), found, clients
        ) from None
    raise advised(
        StorageUnknown(f"the object store did not say whether it wrote: {found}"), found, clients
    ) from None


def unanswered(clients: Clients) -> StorageUnknown:
    """For a PUT whose time is over."""
    return advised(
        StorageUnknown("the object store did not say in time whether it wrote"),
        Failure(status=None, code=None, kinds=("Timeout",)),
        clients,
    )


class RemotePuts:
    """Those of one root."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tidegate-puts")

    async def in_order(
        self, files: Sequence[tuple[str, bytes]], *, within_s: float, longest_s: float
    ) -> Sequence[PutResult]:
        """`roots.Root.put_in_order` for small files by their keys; one that takes longer than
        `longest_s` ends it. Once this has returned or was cancelled, none is begun, but the one
        that was under way may still be written."""
        sequence = _Sequence(self._clients, files)
        running = asyncio.get_running_loop().run_in_executor(self._threads, sequence.run, within_s)
        # Nobody may be left to hear what it ends with.
        running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            while not running.done():
                left = sequence.begun + longest_s - time.monotonic()
                if left <= 0:
                    break
                await asyncio.wait((running,), timeout=left)
        finally:
            sequence.stopped.set()
        if running.done():
            running.result()
        results = list(sequence.results)
        if not results:
            raise unanswered(self._clients)
        return results


class _Sequence:
    """`results` grows while `run` does, `begun` is when the latest file was; `stopped` keeps the
    next one from being begun."""

    def __init__(self, clients: Clients, files: Sequence[tuple[str, bytes]]) -> None:
        self.results: list[PutResult] = []
        self.begun = time.monotonic()
        self.stopped = threading.Event()
        self._clients = clients
        self._files = files

    def run(self, within_s: float) -> None:
        """Blocking. Raises where the first one does."""
        until = time.monotonic() + within_s
        for key, content in self._files:
            now = time.monotonic()
            if self.stopped.is_set() or (self.results and now > until):
                return
            self.begun = now
            try:
                result = self._put(key, content)
            except (StorageUnavailable, StorageUnknown):
                if not self.results:
                    raise
                return
            self.results.append(result)
            if result is PutResult.EXISTS:
                return

    def _put(self, key: str, content: bytes) -> PutResult:
        try:
            # Never in parts: only a single PUT can be conditional.
            obstore.put(self._clients.once, key, content, mode="create", use_multipart=False)
        except (BaseError, OSError) as error:
            return put_answer(error, self._clients)
        return PutResult.CREATED
