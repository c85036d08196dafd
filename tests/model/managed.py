"""The model of a catalog-managed table: the commit is Postgres's COMMIT, publishing follows.

Two proposals go through two instances, and each instance has a publisher beside. A PUT may be
answered, or not and arrive later or never; a COMMIT too may have no answer. The table is rebuilt
once, forgotten once, and the database is restored once to an older state.
"""

from collections.abc import Callable, Hashable, Iterable

from tests.model.defects import Defect
from tests.model.explore import Next, RawStep, Step
from tests.model.managed_state import (
    DECIDED,
    NAMES,
    READ,
    Broken,
    Kind,
    Managed,
    Publisher,
    Stage,
    as_it_is,
    ended,
    landed,
    put_in,
    told,
    unlocked,
)

VERSION = 10
"""Added to a version among what a step is done to, which is a proposal else."""
_ONCE_REBUILT, _ONCE_RESTORED, _ONCE_FORGOTTEN = 1, 2, 4

_Can = Callable[..., None]


class ManagedModel:
    """Steps over `Managed` states; tables have at most `versions` versions."""

    def __init__(
        self, kinds: tuple[Kind, Kind], *, versions: int = 3, defect: Defect | None = None
    ) -> None:
        self._kinds = kinds
        self._versions = versions
        self._defect = defect

    def initial(self) -> Managed:
        return Managed()

    def canonical(self, state: Hashable) -> Hashable:
        assert isinstance(state, Managed)
        processes, publishers = state.processes, state.publishers
        if processes[0] > processes[1]:
            state = state._replace(
                processes=(processes[1], processes[0]), lock=(0, 2, 1)[state.lock]
            )
        if publishers[0] > publishers[1]:
            state = state._replace(publishers=(publishers[1], publishers[0]))
        return state

    def named(self, step: RawStep) -> Step:
        what, instance, on, came = step
        names = tuple(str(each - VERSION) if each >= VERSION else NAMES[each] for each in on)
        return Step(what, instance, names, came)

    def steps(self, state: Hashable) -> Iterable[Next]:
        assert isinstance(state, Managed)
        found: list[Next] = []

        def can(do: Callable[..., Managed], *by: object, step: RawStep) -> None:
            try:
                after = do(*by)
            except Broken as broken:
                found.append((step, state, str(broken)))
                return
            if after is not state:
                found.append((step, after, None))

        for number in (1, 2):
            self._of_instance(state, number, can)
            self._of_publisher(state, number, can)
        self._of_others(state, can)
        return found

    def _of_instance(self, state: Managed, number: int, can: _Can) -> None:
        process = state.processes[number - 1]
        if process:
            can(ended, state, number, step=("crash", number, (), ""))
            if state.lock == number:
                can(unlocked, state, step=("session ended", number, (), ""))
            if process[0] == READ:
                if state.lock == 0 and not state.forgotten:
                    step = ("lock and decide", number, (process[1],), "")
                    can(self._decide, state, number, process[1], process[2], step=step)
            elif state.lock == number:
                for came in ("answered", "applied, no answer", "not applied, no answer"):
                    can(self._commit, state, number, came, step=("commit", number, (), came))
            return
        if state.lock:
            return
        for x in (0, 1):
            if self._defect is Defect.INDEX_READ_BEFORE_LOCK and not state.forgotten:
                read = state._replace(
                    processes=put_in(state.processes, number, (READ, x, len(state.rows)))
                )
                can(as_it_is, read, step=("read the index for", number, (x,), ""))
            can(self._propose, state, number, x, step=("propose", number, (x,), ""))
            if not state.forgotten:
                can(self._abort, state, x, step=("abort", number, (x,), ""))

    def _of_publisher(self, state: Managed, number: int, can: _Can) -> None:
        publisher = state.publishers[number - 1]
        if not publisher:
            version = self._to_publish(state, number)
            if version:
                begun = (version, state.rows[version - 1], Stage.PUT.value)
                after = state._replace(publishers=put_in(state.publishers, number, begun))
                step = ("publisher reads", number, (version + VERSION,), "")
                can(as_it_is, after, step=step)
            return
        version, content, stage = publisher
        stopped = state._replace(publishers=put_in(state.publishers, number, ()))
        can(as_it_is, stopped, step=("publisher crashes", number, (), ""))
        on = (content, version + VERSION)
        if stage == Stage.PUT.value:
            came = "created" if version > len(state.log) else "taken"
            can(self._publish, state, number, step=("publisher puts", number, on, came))
            can(self._publish_late, state, number, step=("publisher puts", number, on, "no answer"))
        elif stage == Stage.MARK.value:
            can(self._mark, state, number, step=("publisher marks", number, on, ""))
        else:
            can(
                self._forget_content,
                state,
                number,
                step=("publisher forgets bytes", number, on, ""),
            )

    def _of_others(self, state: Managed, can: _Can) -> None:
        for put in state.late:
            step = ("late put arrives", None, (put[1], put[0] + VERSION), "")
            can(self._arrive, state, put, step=step)
        if state.forgotten:
            return
        if (
            state.lock == 0
            and not state.past & _ONCE_REBUILT
            and (state.quarantined or self._defect is Defect.REBUILD_DROPS_UNPUBLISHED)
        ):
            can(self._rebuild, state, step=("rebuild", None, (), ""))
        # What waits for publishing is published first.
        is_published = state.published == len(state.rows) and not state.quarantined
        if state.lock == 0 and not state.past & _ONCE_FORGOTTEN and is_published:
            after = state._replace(forgotten=True, past=state.past | _ONCE_FORGOTTEN)
            can(as_it_is, after, step=("forget the table", None, (), ""))
        quiet = state.publishers == ((), ()) and not state.late
        if not state.past & _ONCE_RESTORED and (
            quiet or self._defect is Defect.RESTORE_UNDER_A_PUBLISHER
        ):
            for rows in range(len(state.rows)):
                for published in range(min(state.published, rows) + 1):
                    step = (
                        "restore the database",
                        None,
                        (rows + VERSION, published + VERSION),
                        "",
                    )
                    can(self._restore, state, rows, published, step=step)

    # What an instance does.

    def _propose(self, state: Managed, number: int, x: int) -> Managed:
        if state.forgotten:
            if state.sent >> x & 1 and self._defect is not Defect.MISSING_TABLE_IS_DEFINITE:
                return state  # Unknown: an earlier copy may have landed.
            return told(state, x, -1)
        state = self._looked(state)
        if state.quarantined and x not in state.rows:
            return state
        return self._decide(state, number, x, len(state.rows))

    def _looked(self, state: Managed) -> Managed:
        """The first section after a restore looks for what is published beyond the index."""
        if state.looked or self._defect is Defect.NO_LOOK_AFTER_RESTORE:
            return state
        ahead = state.log[: len(state.rows)] != state.rows[: len(state.log)]
        beyond = len(state.log) > len(state.rows)
        return state._replace(looked=True, quarantined=ahead or beyond)

    def _decide(self, state: Managed, number: int, x: int, read: int) -> Managed:
        known = state.rows[:read]
        if x in known:
            return told(ended(state, number), x, known.index(x) + 1)
        if state.closed >> x & 1:
            return told(ended(state, number), x, -1)
        if self._kinds[x] is Kind.READER and known:
            return told(ended(state, number), x, -1)
        state = state._replace(sent=state.sent | 1 << x)
        if self._defect is Defect.ACK_BEFORE_COMMIT:
            answers = (
                (len(state.rows) + 1, state.told[1])
                if x == 0
                else (state.told[0], len(state.rows) + 1)
            )
            state = state._replace(told=answers)
        decided = (DECIDED, x, len(state.rows))
        return state._replace(processes=put_in(state.processes, number, decided), lock=number)

    def _abort(self, state: Managed, x: int) -> Managed:
        state = self._looked(state)
        if state.quarantined:
            return state
        if x in state.rows:
            return told(state, x, state.rows.index(x) + 1)
        return told(state._replace(closed=state.closed | 1 << x), x, -1)

    def _commit(self, state: Managed, number: int, came: str) -> Managed:
        process = state.processes[number - 1]
        assert process
        x = process[1]
        done = ended(state, number)
        if came == "not applied, no answer":
            if self._defect is Defect.UNKNOWN_TAKEN_FOR_FAILURE:
                return told(done, x, -1)
            if self._defect is Defect.ACK_BEFORE_COMMIT and x not in state.rows:
                raise Broken(f"{NAMES[x]} was acked as version {state.told[x]} and is nowhere")
            return done
        if len(state.rows) == self._versions or x in state.rows:
            return done  # The bound; the unique key.
        if state.told[x] == -1:
            raise Broken(f"{NAMES[x]} landed, and it was told that it never would")
        if self._kinds[x] is Kind.READER and state.rows:
            raise Broken(f"{NAMES[x]} landed as {len(state.rows) + 1} over what it conflicts with")
        after = done._replace(rows=(*state.rows, x))
        if came == "answered":
            return told(after, x, len(after.rows))
        return told(after, x, -1) if self._defect is Defect.UNKNOWN_TAKEN_FOR_FAILURE else after

    # What a publisher does.

    def _to_publish(self, state: Managed, number: int) -> int:
        """The version that a publisher takes up; 0 for none."""
        if state.forgotten or state.quarantined:
            return 0
        version = state.published + 1
        if version > len(state.rows):
            return 0
        other = state.publishers[2 - number]
        if self._defect is Defect.PUBLISHED_OUT_OF_ORDER and other and other[0] == version:
            version += 1
        return version if version <= len(state.rows) and version > state.bare else 0

    def _publish(self, state: Managed, number: int) -> Managed:
        publisher = state.publishers[number - 1]
        assert publisher
        version, content, _ = publisher
        if version <= len(state.log):
            if state.log[version - 1] != content:
                raise Broken(
                    f"version {version} was ratified as {NAMES[content]} and lies in the log as "
                    f"{NAMES[state.log[version - 1]]}"
                )
        else:
            state = landed(state, version, content)
        early = self._defect is Defect.CONTENT_FORGOTTEN_EARLY
        after = (version, content, (Stage.FORGET if early else Stage.MARK).value)
        return state._replace(publishers=put_in(state.publishers, number, after))

    def _publish_late(self, state: Managed, number: int) -> Managed:
        publisher = state.publishers[number - 1]
        assert publisher
        put = publisher[:2]
        after_it = state._replace(publishers=put_in(state.publishers, number, ()))
        if put[0] <= len(state.log) or put in state.late:
            return after_it
        return after_it._replace(late=tuple(sorted((*state.late, put))))

    def _mark(self, state: Managed, number: int) -> Managed:
        publisher = state.publishers[number - 1]
        assert publisher
        version, content, _ = publisher
        if state.forgotten or version > len(state.rows):
            return state._replace(publishers=put_in(state.publishers, number, ()))
        early = self._defect is Defect.CONTENT_FORGOTTEN_EARLY
        after: Publisher = () if early else (version, content, Stage.FORGET.value)
        return state._replace(
            published=max(state.published, version),
            publishers=put_in(state.publishers, number, after),
        )

    def _forget_content(self, state: Managed, number: int) -> Managed:
        publisher = state.publishers[number - 1]
        assert publisher
        version, content, _ = publisher
        early = self._defect is Defect.CONTENT_FORGOTTEN_EARLY
        after: Publisher = (version, content, Stage.MARK.value) if early else ()
        after_it = state._replace(publishers=put_in(state.publishers, number, after))
        if state.forgotten:
            return after_it
        bare = max(state.bare, min(version, len(state.rows)))
        if bare > state.published:
            raise Broken(
                f"the bytes of version {bare} are forgotten, and it is not marked as published: no "
                "publisher can go on"
            )
        return after_it._replace(bare=bare)

    def _arrive(self, state: Managed, put: tuple[int, int]) -> Managed:
        after = state._replace(late=tuple(each for each in state.late if each != put))
        if put[0] <= len(state.log):
            return after
        return landed(after, *put)

    # What an administrator does.

    def _restore(self, state: Managed, rows: int, published: int) -> Managed:
        """Sessions end. What was not published is lost, and told as lost."""
        answers = tuple(
            0 if answer == -1 or answer > max(rows, len(state.log)) else answer
            for answer in state.told
        )
        return state._replace(
            rows=state.rows[:rows],
            published=published,
            bare=min(state.bare, published),
            # An id that was aborted since may be closed again, or land.
            closed=0,
            told=(answers[0], answers[1]),
            lock=0,
            looked=False,
            past=state.past | _ONCE_RESTORED,
        )

    def _rebuild(self, state: Managed) -> Managed:
        """The published versions are taken in; what waits for publishing stays."""
        log = state.log
        drops = self._defect is Defect.REBUILD_DROPS_UNPUBLISHED
        rows = log if drops or len(log) > len(state.rows) else log + state.rows[len(log) :]
        after = state._replace(
            rows=rows,
            published=len(log),
            bare=min(state.bare, len(log)),
            quarantined=False,
            past=state.past | _ONCE_REBUILT,
        )
        for x in (0, 1):
            if state.told[x] > 0 and x not in rows:
                raise Broken(f"{NAMES[x]} was acked as version {state.told[x]} and is nowhere")
        return after
