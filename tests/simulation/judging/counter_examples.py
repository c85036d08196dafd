"""What each defect of the models is in the service, and how the judge names what it comes to.

Some are mends that `mutations.py` switches off, two are premises. The others put something else in
the place of a rule that the service has had from the beginning.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from tests.chaos.judging.violations import Kind
from tests.model.defects import Defect
from tests.simulation.judging.mutations import (
    CORE,
    LOOKED_UP,
    Mutation,
    nothing,
    put_in_place,
    without,
)
from tests.simulation.ports.index import MemoryIndex
from tidegate.wire import flow
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.proposal.transaction import Proposal, Reads, ReadyCommit
from tidegate_service.core.catalog_managed.publish import Batch
from tidegate_service.core.commit import group
from tidegate_service.core.commit.batches import abort_fence, table_batch
from tidegate_service.core.commit.batches.table_batch import TableBatch
from tidegate_service.core.commit.decide import Decision
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
)
from tidegate_service.core.errors import Refused, StorageUnknown
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.observe.faults import FaultPoints, Step, around
from tidegate_service.core.ports.index import CommitGroup, CommitSection, Index
from tidegate_service.core.ports.outcomes import Committed, Outcome
from tidegate_service.core.ports.records import TableRecord, Waiting
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log, Storage

_occupy = abort_fence.occupy


async def _taken_is_its_own(log: Log, ready: ReadyCommit, limits: CommitLimits) -> None:
    await _occupy(log, ready, limits)


async def _put_once(log: Log, version: int, content: Content) -> bytes | LogFile | None:
    put = await log.put_if_absent(version, content)
    return None if put is PutResult.CREATED else await log.read(version)


async def _next_one_instead(
    log: Log, ready: ReadyCommit, *_: Any, **__: Any
) -> bytes | LogFile | None:
    try:
        return await _put_once(log, ready.version, ready.content)
    except StorageUnknown:
        return await _put_once(log, ready.version + 1, ready.content)


async def _unknown_is_refused(
    log: Log, ready: ReadyCommit, *_: Any, **__: Any
) -> bytes | LogFile | None:
    try:
        return await _put_once(log, ready.version, ready.content)
    except StorageUnknown as error:
        raise Refused(error.detail, code=Code.CONCURRENT_APPEND) from error


async def _never_same(*_: Any) -> bool:
    return False


_decision = TableBatch._decision


def _decided_once() -> Mapping[str, Any]:
    decided: set[str] = set()

    async def decision(self: TableBatch, member: WaitingProposal) -> Decision | Refused:
        proposal = member.proposal
        if proposal.transaction_id in decided:
            # As if it had read the head, and nothing there.
            head = self.section.table.latest_version
            proposal = replace(proposal, read_version=head, reads=Reads())
        decided.add(proposal.transaction_id)
        return await _decision(self, replace(member, proposal=proposal))

    return {f"{CORE}.commit.batches.table_batch.TableBatch._decision": decision}


_run_group, _landed_before = group.run_group, table_batch.landed_before


def _read_before_lock() -> Mapping[str, Any]:
    known: ContextVar[set[str]] = ContextVar("known")

    async def together(
        members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
    ) -> GroupResult:
        found = {
            name
            for member in members
            for name in (member.proposal.transaction_id,)
            if await member.context.index.transaction(member.table.id, name) is not None
        }
        known.set(found)
        return await _run_group(members, wait, in_company)

    async def landed(section: CommitSection, proposal: Proposal) -> Committed | None:
        if proposal.transaction_id not in known.get():
            return None
        return await _landed_before(section, proposal)

    return {
        "tests.simulation.worlds.instance.run_group": together,
        LOOKED_UP: landed,
    }


_outcome, _may_try_again = group._outcome, WaitingProposal.may_try_again


async def _told_at_once(
    landing: TableBatch, member: WaitingProposal, of: CommitGroup
) -> Outcome | Exception:
    outcome = await _outcome(landing, member, of)
    if isinstance(outcome, Committed):
        member.tell(outcome)
    return outcome


def _unless_told(self: WaitingProposal) -> bool:
    return not self.told and _may_try_again(self)


_classify = flow.classify


def _refused_is_final(answer: Any, *, request_id: str) -> flow.Verdict:
    verdict = _classify(answer, request_id=request_id)
    return flow.Final(verdict.error) if isinstance(verdict, flow.Refused) else verdict


async def _forgotten_before_marked(
    index: Index, storage: Storage, table: TableRecord, *, faults: FaultPoints, **_: Any
) -> Batch:
    waiting = await index.unpublished_versions(table.id, limit=1)
    ((version, content),) = waiting.versions
    async with around(faults, Step.M8_PUBLISH):
        await storage.log(table.location).put_if_absent(version, content)
    async with around(faults, Step.M10_FORGET_CONTENT):
        await index.forget_content(table.id, through=version)
    async with around(faults, Step.M9_MARK_PUBLISHED):
        await index.mark_published(table.id, version, version)
    return Batch(count=1, through=version, behind=0, is_over=True)


async def _forgets_all(
    self: MemoryIndex, table_id: str, *, through: int, at_once: bool = False
) -> None:
    """A CHECK of the schema, and the statement itself, forget what is marked alone."""
    rows = self._server.tables[table_id] = self._server.tables[table_id].copy()
    rows.forgotten_through = through


_unpublished_versions = MemoryIndex.unpublished_versions


def _each_to_one_publisher() -> Mapping[str, Any]:
    given: dict[int, MemoryIndex] = {}

    async def unpublished(self: MemoryIndex, table_id: str, **asked: Any) -> Waiting:
        waiting = await _unpublished_versions(self, table_id, **asked)
        # Whoever was given one asks for it again once the log was looked through.
        left = [one for one in waiting.versions if given.get(one[0], self) is self][:1]
        given.update((version, self) for version, _ in left)
        return replace(waiting, versions=left)

    return {"tests.simulation.ports.index.MemoryIndex.unpublished_versions": unpublished}


async def _none_held(*_: Any) -> tuple[()]:
    return ()


def _instead(places: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> Mutation:
    return lambda: put_in_place(places() if callable(places) else places)


_PUBLISH_BATCH = f"{CORE}.catalog_managed.publish.publish_batch"

COMES_TO: Mapping[Defect, tuple[Kind, Mutation]] = {
    Defect.ABORT_WITHOUT_FENCE: (Kind.LANDED_AFTER_ALL, lambda: without("abort-fence")),
    Defect.FENCE_CONTENT_WITH_TAKEN: (
        Kind.LANDED_AFTER_ALL,
        _instead({f"{CORE}.commit.batches.abort_fence.occupy": _taken_is_its_own}),
    ),
    Defect.INVALID_WITHOUT_FENCE: (Kind.LANDED_AFTER_ALL, lambda: without("fenced-422")),
    Defect.INVALID_AT_STALE_HEAD: (Kind.UNSAFE_ACCEPT, lambda: without("422-at-the-logs-end")),
    Defect.TOO_OLD_WITHOUT_FENCE: (Kind.LANDED_AFTER_ALL, lambda: without("fenced-too-old")),
    Defect.LATE_PUT_NOT_AWAITED: (
        Kind.GAP,
        _instead({f"{CORE}.commit.batches.plain_batch.occupy": _next_one_instead}),
    ),
    Defect.UNKNOWN_TAKEN_FOR_FAILURE: (
        Kind.LANDED_AFTER_ALL,
        _instead({f"{CORE}.commit.batches.plain_batch.occupy": _unknown_is_refused}),
    ),
    Defect.DECISION_REUSED: (Kind.UNSAFE_ACCEPT, _instead(_decided_once)),
    Defect.ID_NOT_LOOKED_UP_AGAIN: (
        Kind.DUPLICATE,
        _instead(
            {
                LOOKED_UP: nothing,
                f"{CORE}.log.put_version.is_same": _never_same,
            }
        ),
    ),
    Defect.IDS_FORGOTTEN_WITH_TABLE: (Kind.DUPLICATE, lambda: without("kept-ids")),
    Defect.CLEANED_LOG_NOT_SEEN: (Kind.OTHER_BYTES, lambda: without("hidden-logs")),
    Defect.INDEX_READ_BEFORE_LOCK: (Kind.DUPLICATE, _instead(_read_before_lock)),
    Defect.ACK_BEFORE_COMMIT: (
        Kind.LOST,
        _instead(
            {
                f"{CORE}.commit.group._outcome": _told_at_once,
                f"{CORE}.commit.queue.waiting_proposal.WaitingProposal.may_try_again": _unless_told,
            }
        ),
    ),
    Defect.NO_LOOK_AFTER_RESTORE: (
        Kind.LANDED_AFTER_ALL,
        lambda: without("looks-after-restore"),
    ),
    Defect.MISSING_TABLE_IS_DEFINITE: (
        Kind.LANDED_AFTER_ALL,
        _instead({"tidegate.wire.flow.classify": _refused_is_final}),
    ),
    Defect.CONTENT_FORGOTTEN_EARLY: (
        Kind.LOST,
        _instead(
            {
                _PUBLISH_BATCH: _forgotten_before_marked,
                "tests.simulation.ports.index.MemoryIndex.forget_content": _forgets_all,
            }
        ),
    ),
    Defect.PUBLISHED_OUT_OF_ORDER: (Kind.GAP, _instead(_each_to_one_publisher)),
    Defect.REBUILD_DROPS_UNPUBLISHED: (
        Kind.LOST,
        _instead({f"{CORE}.maintenance.rebuilding.go_on": _none_held}),
    ),
    Defect.RETENTION_SHORTER_THAN_RETRIES: (Kind.DUPLICATE, lambda: without(None)),
    Defect.RESTORE_UNDER_A_PUBLISHER: (Kind.LANDED_AFTER_ALL, lambda: without(None)),
}
PREMISES = (Defect.RETENTION_SHORTER_THAN_RETRIES, Defect.RESTORE_UNDER_A_PUBLISHER)
"""Nothing in the service is in the way of these; they hold where the premise does."""
