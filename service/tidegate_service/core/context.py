"""The effects that use cases take as parameters."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import Any

from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.access.roles import ANONYMOUS, Caller
from tidegate_service.core.instance.asked_checkpoints import AskedCheckpoints
from tidegate_service.core.instance.copy_limits import CopyLimits
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.instance.log_checks import LogChecks
from tidegate_service.core.instance.log_looks import LogLooks
from tidegate_service.core.instance.long_predicates import LongPredicates
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.instance.pending_proposals import PendingProposals
from tidegate_service.core.instance.recent_tables import RecentTables
from tidegate_service.core.instance.running_commits import RunningCommits
from tidegate_service.core.instance.table_cache import TableCache
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.limits import MANIFEST_LIMITS, CommitLimits, ManifestLimits
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.observe.telemetry import SILENT, Telemetry
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Outcome
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.ports.upkeep.forgettings import NOT_KEPT, Forgettings
from tidegate_service.core.ports.upkeep.upkeep import NO_UPKEEP, UpkeepStanding
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import OwnTurns, SharedTurns, Turns

SCANS = 64
"""Scans, and contents of versions, that are answered at a time: a scan holds up to two pages, and a
content up to 4 MiB, some pieces of what the index has, or its part of `FileMemory`."""
SCANS_BEGUN = 4
"""Scans at a time whose table is looked up and whose predicates are read, and contents that are
read: others wait, which costs nobody anything if they leave."""
VERIFYING = 1
"""Comparisons of an index with its log that one principal has at a time; its others wait."""
COMPARING = 2
"""Threads for these: what a large version is made of is one piece of work, and takes seconds, so
one principal's leaves a thread to another's."""
LOOKUPS = 12
"""Tables that are looked up for one principal at a time: commits of others want connections, too.
More than its reads that are worked on, which hold up no commit of its own."""
WIDE_TABLES = 1
"""Tables whose long protocol and metadata are read for one principal at a time, and sections of one
such table."""
LISTINGS = 1
"""Pages of tables that are read for one principal at a time: there may be wide tables on them."""
HISTORIES = 1
"""Pages of commits that are read for one principal at a time: one of a thousand holds up the event
loop for some tens of milliseconds, a few at a time."""
OPENINGS = 2
"""Logs that are looked through for one principal at a time, to say what a reader has to read."""
MANIFESTS = 1
"""Tables whose manifests are made for one principal at a time; its others wait."""
MAINTAINED = 1
"""Tables that are forgotten or made anew for one principal at a time, and such that are released;
its others wait."""
REGISTERED = 2
"""Tables that are registered for one principal at a time, each of a log of any length; its others
wait."""
CATCHING_UP = 2
"""Logs that are read on for conflict checks and aborts of one principal at a time, and as many for
its reads. Each takes up to 80 MiB."""
CHECKS = 2
"""Conflict checks of one principal that are worked on at a time: each takes as much of the event
loop as a commit, and no group bounds them."""
ABORTS = 2
"""Transactions that one principal aborts at a time: each takes as much of the event loop as a
commit, and no group bounds them."""
CREATIONS = 2
"""Tables that one principal creates at a time: each takes as much as a commit, and no group bounds
them."""
STAGED = 2
"""Staged files, beyond short ones, that are read and decided on for one principal at a time, and
first versions that stock clients have written; its others wait. A file of 4 MiB may be half a
million actions."""
VACUUMS = 1
"""Vacuums of one principal at a time; its others wait."""
SCAN_PAGES = 3
"""Pages of all scans, and pieces of large contents, that are fetched at a time, two of them for one
principal: commits have the other connections."""

SCANNED_METADATA_BYTES = 512 * 1024 * 1024
"""What the metadata of all scans that are answered may take in memory."""


def nobody_waits(table_id: str) -> None:
    """Without a publisher in this process, its periodic scan elsewhere finds the table."""


async def told_at_once(
    context: "Context", table_id: str, transaction_id: str, engine_info: str | None
) -> None:
    """Without a queue that keeps versions, nobody waits to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One instance's world.

    `monotonic_s` measures durations and deadlines in seconds (`core.observe.elapsed`), `now_ms`
    says when a table's metadata was made; the time of a commit is the database's, and an instance
    whose `now_ms` is far from it takes none (`core.log.clock_skew`). `commit` has a proposal wait
    until it is decided; which queue is behind it is the composition's choice. `late` returns when
    the writer of a staged commit may be told that it came too late. `wake_publisher` takes a table
    id.
    `scan_threads` find the files that scans need and make their answers' batches; `body_threads`
    inflate and decode what is sent; `verify_threads` look at large versions that are compared.
    In turns, `defining` makes the first versions of tables to be.
    """

    index: Index
    storage: Storage
    locations: LocationPolicy
    new_id: Callable[[], str]
    monotonic_s: Callable[[], float]
    now_ms: Callable[[], int]
    commit: "Commit"
    commit_deadline_s: float = 30.0
    long_deadline_s: float = 900.0
    max_unpublished_versions: int = 100_000
    late: "Late" = told_at_once
    running: RunningCommits = field(default_factory=RunningCommits)
    wake_publisher: Callable[[str], None] = nobody_waits
    caller: Caller = ANONYMOUS
    faults: FaultPoints = NO_FAULTS
    telemetry: Telemetry = SILENT
    upkeep: UpkeepStanding = NO_UPKEEP
    forgettings: Forgettings = NOT_KEPT
    windows: WindowCache = field(default_factory=WindowCache)
    tables: TableCache = field(default_factory=TableCache)
    recent: RecentTables = field(default_factory=RecentTables)
    log_checks: LogChecks = field(default_factory=LogChecks)
    log_looks: LogLooks = field(default_factory=LogLooks)
    heads: HeadChecks = field(default_factory=HeadChecks)
    own_logs: OwnLogs = field(default_factory=OwnLogs)
    limits: CommitLimits = field(default_factory=CommitLimits)
    manifest_limits: ManifestLimits = MANIFEST_LIMITS
    pending: PendingProposals = field(default_factory=PendingProposals)
    long_predicates: LongPredicates = field(default_factory=LongPredicates)
    scans: Turns = field(default_factory=lambda: Turns(SCANS))
    scans_begun: Turns = field(default_factory=lambda: Turns(SCANS_BEGUN))
    scan_pages: SharedTurns = field(default_factory=lambda: SharedTurns(SCAN_PAGES))
    scanned_metadata: Shares = field(
        default_factory=lambda: Shares(SCANNED_METADATA_BYTES, "bytes of metadata that scans hold")
    )
    defining: Turns = field(default_factory=lambda: Turns(1))
    lookups: OwnTurns = field(default_factory=lambda: OwnTurns(LOOKUPS))
    listings: OwnTurns = field(default_factory=lambda: OwnTurns(LISTINGS))
    histories: OwnTurns = field(default_factory=lambda: OwnTurns(HISTORIES))
    wide_sections: OwnTurns = field(default_factory=lambda: OwnTurns(WIDE_TABLES))
    wide_tables: OwnTurns = field(default_factory=lambda: OwnTurns(WIDE_TABLES))
    openings: OwnTurns = field(default_factory=lambda: OwnTurns(OPENINGS))
    manifests: OwnTurns = field(default_factory=lambda: OwnTurns(MANIFESTS))
    checkpoints: AskedCheckpoints[Any] = field(default_factory=AskedCheckpoints)
    maintaining: OwnTurns = field(default_factory=lambda: OwnTurns(MAINTAINED))
    releasing: OwnTurns = field(default_factory=lambda: OwnTurns(MAINTAINED))
    registering: OwnTurns = field(default_factory=lambda: OwnTurns(REGISTERED))
    catching_up: OwnTurns = field(default_factory=lambda: OwnTurns(CATCHING_UP))
    reading_logs: OwnTurns = field(default_factory=lambda: OwnTurns(CATCHING_UP))
    checking: OwnTurns = field(default_factory=lambda: OwnTurns(CHECKS))
    aborting: OwnTurns = field(default_factory=lambda: OwnTurns(ABORTS))
    creating: OwnTurns = field(default_factory=lambda: OwnTurns(CREATIONS))
    staged: OwnTurns = field(default_factory=lambda: OwnTurns(STAGED))
    file_looks: OwnTurns = field(default_factory=lambda: OwnTurns(VERIFYING))
    vacuuming: OwnTurns = field(default_factory=lambda: OwnTurns(VACUUMS))
    copies: CopyLimits = field(default_factory=CopyLimits)
    verifying: OwnTurns = field(default_factory=lambda: OwnTurns(VERIFYING))
    verify_threads: Pool = field(default_factory=lambda: Pool("verify", COMPARING))
    scan_threads: Pool = field(default_factory=lambda: Pool("scans", 1))
    body_threads: Pool = field(default_factory=lambda: Pool("bodies", 2))

    @property
    def who(self) -> str | None:
        """In whose name it holds its part of what all callers use."""
        return self.caller.share

    def called_by(self, caller: Caller) -> "Context":
        """The same world for another caller: what `dataclasses.replace` gives, three times as
        fast, since every request takes one."""
        twin = object.__new__(Context)
        for value_of, put in _SLOTS:
            put(twin, value_of(self))
        _PUT_CALLER(twin, caller)
        return twin


Commit = Callable[[Context, TableIdentity, Proposal], Awaitable[Outcome]]
"""Commits a proposal to a table, for the context's caller."""

Late = Callable[[Context, str, str, str | None], Awaitable[None]]
"""Takes the id of the table, the id of the transaction that came too late, and its engineInfo."""

_SLOTS = tuple(
    (vars(Context)[one.name].__get__, vars(Context)[one.name].__set__) for one in fields(Context)
)
_PUT_CALLER = vars(Context)["caller"].__set__
