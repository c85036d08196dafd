"""Mends switched off, one at a time, to see that the simulation finds what they mend.

A mutation puts the old behaviour in the place of the mended function, for as long as a run lasts.
The service knows nothing of it: there are no flags in it.
"""

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.worlds import deeds
from tests.simulation.worlds.base import base
from tests.simulation.worlds.plan import Deed
from tidegate.errors import ConflictError, ServiceUnavailable, TidegateError
from tidegate.wire import flow
from tidegate.wire.exchange import Response
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Invalid, Proposal, ReadyCommit
from tidegate_service.core.catalog_managed.publish import Batch
from tidegate_service.core.commit import group
from tidegate_service.core.commit.batches import table_batch
from tidegate_service.core.commit.batches.plain_batch import PlainBatch
from tidegate_service.core.commit.batches.table_batch import TableBatch
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.commit.refusals import Refusal, close
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.log.catching_up.foreign_commits import take_found
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Outcome
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import DatedFile, Log, Storage
from tidegate_service.core.tables import create
from tidegate_service.core.tables.first_versions import FirstVersions

Mutation = Callable[[], AbstractContextManager[Any]]

CORE = "tidegate_service.core"
BATCHES = f"{CORE}.commit.batches"

LOOKED_UP = f"{BATCHES}.table_batch.landed_before"


@contextmanager
def put_in_place(places: Mapping[str, Any]) -> Iterator[None]:
    for catalog_managed in (False, True):
        # What all worlds begin with is the service's own, and made once.
        base(catalog_managed)
    with ExitStack() as stack:
        for place, put in places.items():
            stack.enter_context(patch(place, put))
        yield


async def nothing(*_: Any, **__: Any) -> None:
    return None


async def _nothing_recalled(*_: Any, **__: Any) -> tuple[list[Any], None]:
    return [], None


def _shared_folder(transaction_id: str, run: int) -> str:
    return f"tidegate_txn={transaction_id}"


def _not_asked(*_: Any) -> Generator[Any, Any, bool]:
    yield from ()
    return False


class _Unlooked:
    """A log of which only version 0 is looked at."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        return but_version is None and await self._log.holds_anything()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


_first_versions_of = create.first_versions_of


def _claimed_by_version_0(table: TableIdentity) -> FirstVersions:
    first = _first_versions_of(table)

    async def claim(
        section: CommitSection, log: Log, ready: ReadyCommit, limits: CommitLimits
    ) -> ReadyCommit:
        return await first.claim(section, _Unlooked(log), ready, limits)  # type: ignore[arg-type]

    return replace(first, claim=claim)


_stands = table_batch.TableBatch._stands


async def _invalid_unfenced(
    self: TableBatch, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
) -> bool:
    """As if each id were one that nobody had before: the log is read to its end, and that is
    all."""
    if isinstance(refusal, Invalid):
        proposal, attempt = replace(proposal, has_new_id=True), 1
    return await _stands(self, context, proposal, refusal, attempt=attempt)


async def _invalid_at_the_index(
    self: TableBatch, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
) -> bool:
    if not isinstance(refusal, Invalid):
        return await _stands(self, context, proposal, refusal, attempt=attempt)
    await close(context, self.section, proposal.transaction_id)
    self.must_save = True
    return True


async def _too_old_unfenced(
    self: TableBatch, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
) -> bool:
    if isinstance(refusal, Refused) and refusal.code is Code.READ_VERSION_TOO_OLD:
        return True
    return await _stands(self, context, proposal, refusal, attempt=attempt)


_true_of_all = group.true_of_all


def _gone_is_gone(member: WaitingProposal, outcome: Outcome | Exception) -> Outcome | Exception:
    return outcome if isinstance(outcome, NotFound) else _true_of_all(member, outcome)


_use_case = deeds.use_case


def _never_adopted(deed: Deed, *, catalog_managed: bool, **_: bool) -> Any:
    return _use_case(deed, catalog_managed=catalog_managed and deed is not Deed.REGISTER)


_error_of = flow.error_of


def _any_code(response: Response, *, request_id: str) -> TidegateError:
    """Whoever has a code in the body is the service."""
    body = json.loads(response.body)
    of = ServiceUnavailable if response.status >= 500 else ConflictError
    found = _error_of(response, request_id=request_id)
    if found.code is not None:
        return found
    return of("refused", code=body.get("code"), status=response.status)


async def _no_fence(_: Context, section: CommitSection, __: Any, transaction_id: str) -> Any:
    return await section.transaction(transaction_id)


async def _all_under_one_lock(
    self: PlainBatch, _: Context, found: DatedFile | None, __: float
) -> None:
    """Behind a version that was taken, the log is read to its end at once."""
    self.must_save = True
    while found is not None:
        await take_found(self.section, found, began_s=0, now_s=0, race_s=1)
        found = await self._log.read_dated(self.section.table.latest_version + 1)


async def _published_unseen(index: Index, storage: Storage, table: TableRecord, **_: Any) -> Batch:
    """What waits is marked published by whoever meets a file there, whatever it holds."""
    waiting = await index.unpublished_versions(table.id, limit=500)
    if not waiting.versions:
        return Batch(count=0, through=table.published_version, behind=0, is_over=True)
    log = storage.log(table.location)
    for version, content in waiting.versions:
        await log.put_if_absent(version, content)
    first, last = waiting.versions[0][0], waiting.versions[-1][0]
    await index.mark_published(table.id, first, last)
    return Batch(count=len(waiting.versions), through=last, behind=0, is_over=False)


_PLACES: Mapping[str, Mapping[str, Any]] = {
    "private-folders": {
        "tests.simulation.worlds.jobs.folder_of": _shared_folder,
        "tests.simulation.worlds.clients.Client._has_landed": _not_asked,
    },
    "looks-before-creation": {f"{CORE}.tables.create.first_versions_of": _claimed_by_version_0},
    "looks-after-restore": {
        f"{BATCHES}.catalog_managed_batch.check_log": nothing,
        f"{BATCHES}.catalog_managed_batch.needs_check": lambda *_: False,
    },
    "own-logs": {
        f"{CORE}.catalog_managed.findings.not_own": nothing,
        f"{CORE}.maintenance.rebuilding.not_own": nothing,
    },
    "fenced-422": {f"{BATCHES}.table_batch.TableBatch._stands": _invalid_unfenced},
    "422-at-the-logs-end": {f"{BATCHES}.table_batch.TableBatch._stands": _invalid_at_the_index},
    "fenced-too-old": {f"{BATCHES}.table_batch.TableBatch._stands": _too_old_unfenced},
    "404-of-one-attempt": {f"{CORE}.commit.group.true_of_all": _gone_is_gone},
    "saved-portions": {f"{BATCHES}.plain_batch.PlainBatch._take": _all_under_one_lock},
    "kept-ids": {
        f"{CORE}.tables.recall.{kind}Registration.recall": _nothing_recalled
        for kind in ("Plain", "CatalogManaged")
    },
    "adoption": {
        "tests.simulation.worlds.deeds.use_case": _never_adopted,
        "tests.simulation.worlds.world.use_case": _never_adopted,
    },
    "settled-places": {
        f"{CORE}.tables.create.check_none_under_way": nothing,
        f"{CORE}.log.catching_up.tail.gap": nothing,
        f"{CORE}.log.catching_up.foreign_commits.check_own": lambda *_: None,
    },
    "bounded-silence": {"tests.simulation.ports.server.SILENT_S": math.inf},
    "own-answers": {"tidegate.wire.flow.error_of": _any_code},
    "older-ids": {f"{CORE}.log.loading.load.keep_id": nothing},
    "abort-fence": {f"{BATCHES}.plain_batch.fence": _no_fence},
    "looked-up-ids": {LOOKED_UP: nothing},
    "hidden-logs": {
        f"{BATCHES}.plain_batch.reload_if_truncated": nothing,
        f"{BATCHES}.abort_fence.reload_if_truncated": nothing,
    },
    "gaps": {f"{CORE}.log.catching_up.tail.gap": nothing},
    "compared-bytes": {
        f"{CORE}.catalog_managed.publish.publish_batch": _published_unseen,
        "tidegate_service.background.publisher.publish_batch": _published_unseen,
    },
}

MUTATIONS: Mapping[str, Mutation] = {
    name: lambda places=places: put_in_place(places)  # type: ignore[misc]
    for name, places in _PLACES.items()
}
"""Each name says what is switched off."""


def without(name: str | None) -> AbstractContextManager[Any]:
    """The service without that mend; as it is, where there is no name."""
    return nullcontext() if name is None else MUTATIONS[name]()
