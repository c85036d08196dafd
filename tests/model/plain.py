"""The model of a plain table: the commit is the put-if-absent of the next version.

Two proposals go through two instances, each as often as it likes. An instance holds the row lock
until its session ends, and goes on without it as one that was stopped and continued does.
Every PUT may be answered, or not and arrive later or never. Another writer commits once, cleans the
log up once; the table is rebuilt once (or forgotten and registered), and the database is restored
once to an older state.
"""

from collections.abc import Callable, Hashable, Iterable

from tests.model.defects import Defect
from tests.model.explore import Next, RawStep, Step
from tests.model.plain_state import (
    FENCES,
    FOREIGN,
    NAMES,
    Broken,
    Kind,
    Plain,
    Process,
    as_it_is,
    bits,
    closed,
    ended,
    judged,
    name_of,
    rebuilt,
    told,
    unlocked,
    with_process,
)

VERSION = 10
"""Added to a version among what a step is done to, which is an entry else."""
_READS_BEFORE_LOCK = -1
_ONCE_FOREIGN, _ONCE_CLEANED, _ONCE_REBUILT, _ONCE_RESTORED = 1, 2, 4, 8

_Can = Callable[..., None]


class PlainModel:
    """Steps over `Plain` states; logs have at most `versions` versions."""

    def __init__(
        self, kinds: tuple[Kind, Kind], *, versions: int = 4, defect: Defect | None = None
    ) -> None:
        self._kinds = kinds
        self._versions = versions
        self._defect = defect

    def initial(self) -> Plain:
        return Plain()

    def canonical(self, state: Hashable) -> Hashable:
        assert isinstance(state, Plain)
        first, second = state.processes
        if first <= second:
            return state
        return state._replace(processes=(second, first), lock=(0, 2, 1)[state.lock])

    def steps(self, state: Hashable) -> Iterable[Next]:
        assert isinstance(state, Plain)
        found: list[Next] = []

        def can(do: Callable[..., Plain], *by: object, step: RawStep) -> None:
            try:
                after = do(*by)
            except Broken as broken:
                found.append((step, state, str(broken)))
                return
            if after is not state:
                found.append((step, after, None))

        for number in (1, 2):
            self._of_instance(state, number, can)
        self._of_others(state, can)
        return found

    def _of_instance(self, state: Plain, number: int, can: _Can) -> None:
        work, head, done = process = state.processes[number - 1]
        if not work:
            if self._defect is Defect.INDEX_READ_BEFORE_LOCK:
                for x in (0, 1):
                    read = Process((x,), state.head, _READS_BEFORE_LOCK)
                    can(
                        with_process,
                        state,
                        number,
                        read,
                        step=("read the index for", number, (x,), ""),
                    )
            if state.lock == 0:
                for ids in ((0,), (1,), (0, 1), (1, 0)):
                    can(self._propose, state, number, ids, step=("propose", number, ids, ""))
                for x in (0, 1):
                    can(self._abort, state, number, x, step=("abort", number, (x,), ""))
            return
        # What it was about is not told to anybody.
        can(ended, state, number, step=("crash", number, (), ""))
        if state.lock == number:
            can(unlocked, state, step=("session ended", number, (), ""))
        if done == _READS_BEFORE_LOCK:
            if state.lock == 0:
                can(self._decide_stale, state, number, step=("lock and decide", number, work, ""))
        elif done < len(work):
            on = (work[done], head + done + 1 + VERSION)
            came = self._put_comes(state, process)
            if came:
                can(self._put, state, number, step=("put", number, on, came))
            if came != "taken":
                can(self._unanswered_put, state, number, step=("put", number, on, "no answer"))
        elif state.lock == number:
            can(self._commit, state, number, step=("commit", number, (), "answered"))
            step = ("commit", number, (), "applied, no answer")
            can(self._unanswered_commit, state, number, step=step)

    def _of_others(self, state: Plain, can: _Can) -> None:
        log, end, past = state.log, len(state.log), state.past
        if end < self._versions:
            if state.late:
                for entry in range(4):
                    if state.late >> entry & 1:
                        step = ("late put arrives", None, (entry, end + 1 + VERSION), "")
                        can(self._land, state, entry, step=step)
            if not past & _ONCE_FOREIGN:
                after = state._replace(past=past | _ONCE_FOREIGN)
                step = ("foreign commit", None, (end + 1 + VERSION,), "")
                can(self._land, after, FOREIGN, step=step)
        if not past & _ONCE_CLEANED and end and self._may_hide(state, end - 1):
            after = state._replace(hidden=end - 1, past=past | _ONCE_CLEANED)
            can(as_it_is, after, step=("clean up below", None, (end + VERSION,), ""))
        if past & _ONCE_CLEANED and state.lock == 0 and not past & _ONCE_REBUILT:
            after = state._replace(past=past | _ONCE_REBUILT)
            forgets = self._defect is Defect.IDS_FORGOTTEN_WITH_TABLE
            what = "forget and register" if forgets else "rebuild"
            can(rebuilt, after, forgets, step=(what, None, (), ""))
        if not past & _ONCE_RESTORED and state.base == 0:
            for head in range(state.head):
                if self._is_kept(log[head : state.hidden]):
                    closed = bits(x for x in (0, 1) if FENCES[x] in log[:head])
                    after = state._replace(
                        head=head, closed=closed, lock=0, past=past | _ONCE_RESTORED
                    )
                    step = ("restore the database", None, (head + VERSION,), "")
                    can(as_it_is, after, step=step)

    def named(self, step: RawStep) -> Step:
        what, instance, on, came = step
        names = tuple(str(each - VERSION) if each >= VERSION else name_of(each) for each in on)
        return Step(what, instance, names, came)

    def _may_hide(self, state: Plain, hidden: int) -> bool:
        """A clean-up beside a section that has not read so far is told of in docs/invariants.md."""
        under_way = state.lock and state.processes[state.lock - 1].head < hidden
        return not under_way and self._is_kept(state.log[state.head : hidden])

    def _is_kept(self, unknown: tuple[int, ...]) -> bool:
        """Whether nothing of ours is among what the index can never read again."""
        if self._defect is Defect.RETENTION_SHORTER_THAN_RETRIES:
            return True
        return all(entry == FOREIGN for entry in unknown)

    # What an instance does.

    def _propose(self, state: Plain, number: int, ids: tuple[int, ...]) -> Plain:
        state = self._revealed(state)
        if len(ids) == 1:
            return self._decided(state._replace(lock=number), number, ids[0], state.head)
        work: tuple[int, ...] = ()
        for x in ids:
            if self._outcome(state, x, state.head, behind=work) != "ready":
                return state
            work += (x,)
        return with_process(state._replace(lock=number), number, Process(work, state.head, 0))

    def _abort(self, state: Plain, number: int, x: int) -> Plain:
        state = self._revealed(state)
        match self._known(state, x, state.head):
            case int(version):
                return told(state, x, version)
            case "closed":
                return told(state, x, -1)
        if self._defect is Defect.ABORT_WITHOUT_FENCE:
            return told(closed(state, x), x, -1)
        fence = Process((FENCES[x],), state.head, 0)
        return with_process(state._replace(lock=number), number, fence)

    def _revealed(self, state: Plain) -> Plain:
        if state.hidden <= state.head or self._defect is Defect.CLEANED_LOG_NOT_SEEN:
            return state
        return rebuilt(state, False)

    def _known(self, state: Plain, x: int, head: int) -> int | str | None:
        """The version that a proposal landed as, "closed", or None."""
        known = state.log[max(state.base - 1, 0) : head]
        if state.kept >> x & 1 or x in known:
            return state.log.index(x) + 1
        if state.closed >> x & 1 or FENCES[x] in known:
            return "closed"
        return None

    def _outcome(
        self, state: Plain, x: int, head: int, *, behind: tuple[int, ...] = ()
    ) -> int | str:
        known = self._known(state, x, head)
        if known is not None:
            return known
        return judged(self._kinds[x], x, state.log[:head] + behind, state.base)

    def _decided(self, state: Plain, number: int, x: int, head: int) -> Plain:
        """The proposal decided by what the instance knows, the versions up to `head`; the log's end
        is read in before it is told that it is invalid or too old, and the id is fenced."""
        end = len(state.log)
        outcome = self._outcome(state, x, head)
        if outcome == "invalid" and self._defect is Defect.INVALID_AT_STALE_HEAD:
            if judged(self._kinds[x], x, state.log, state.base) == "ready":
                raise Broken(f"{NAMES[x]} was called invalid, and at the log's end it is valid")
            return self._closed_at_once(state, number, x)
        if outcome in ("invalid", "too old") and head < end:
            head = end
            outcome = self._outcome(state, x, head)
        if outcome == "ready":
            return with_process(state, number, Process((x,), head, 0))
        if outcome == "conflict":
            return told(ended(state, number), x, -1)
        if outcome in ("invalid", "too old"):
            spared = {
                "invalid": Defect.INVALID_WITHOUT_FENCE,
                "too old": Defect.TOO_OLD_WITHOUT_FENCE,
            }
            if self._defect is spared[str(outcome)]:
                return self._closed_at_once(state, number, x)
            return with_process(state, number, Process((FENCES[x],), head, 0))
        if state.lock != number:
            return ended(state, number)
        done = ended(state, number)._replace(head=max(state.head, head))
        if outcome == "closed":
            return told(closed(done, x), x, -1)
        return told(done, x, int(outcome))

    def _closed_at_once(self, state: Plain, number: int, x: int) -> Plain:
        if state.lock != number:
            return ended(state, number)
        return told(closed(ended(state, number), x), x, -1)

    def _decide_stale(self, state: Plain, number: int) -> Plain:
        """By what was read before the lock, for the version that is next under it."""
        (x,), read, _ = state.processes[number - 1]
        locked = state._replace(lock=number)
        if self._outcome(state, x, read) != "ready":
            return ended(locked, number)
        return with_process(locked, number, Process((x,), state.head, 0))

    def _put_comes(self, state: Plain, process: Process) -> str:
        version = process.head + process.done + 1
        if version <= state.hidden:
            return "created"  # Under a checkpoint, where nobody looks.
        if version <= len(state.log):
            same = state.log[version - 1] == process.work[process.done]
            own = same and self._defect is not Defect.ID_NOT_LOOKED_UP_AGAIN
            return "created" if own else "taken"
        return "created" if version <= self._versions else ""

    def _put(self, state: Plain, number: int) -> Plain:
        work, head, done = process = state.processes[number - 1]
        entry, version = work[done], head + done + 1
        end = len(state.log)
        if self._put_comes(state, process) == "created":
            if version > end + 1:
                raise Broken(f"version {version} is put where the log ends at {end}")
            after = self._land(state, entry) if version == end + 1 else state
            if self._defect is Defect.ACK_BEFORE_COMMIT and entry < 2:
                after = told(after, entry, version)
            return with_process(after, number, Process(work, head, done + 1))
        if self._defect is Defect.DECISION_REUSED:
            return with_process(state, number, Process(work[done:], version, 0))
        content = self._defect is Defect.FENCE_CONTENT_WITH_TAKEN and entry in FENCES
        if content and state.log[version - 1] != entry - 2:
            return with_process(state, number, Process(work, head, done + 1))
        if done and state.lock == number:
            # What is there is saved; whoever was behind it asks again.
            return with_process(state, number, Process(work[:done], head, done))
        return self._decided_again(state, number, work[done:])

    def _decided_again(self, state: Plain, number: int, left: tuple[int, ...]) -> Plain:
        end = len(state.log)
        entry = left[0]
        if entry not in FENCES:
            if self._defect is Defect.ID_NOT_LOOKED_UP_AGAIN:
                return with_process(state, number, Process((entry,), end, 0))
            again = self._decided(state, number, entry, end)
            process = again.processes[number - 1]
            ready = process.work == (entry,) and len(left) > 1
            if ready and self._outcome(state, left[1], end, behind=(entry,)) == "ready":
                return with_process(state, number, Process(left, end, 0))
            return again
        x = entry - 2
        known = self._known(state, x, end)
        if known is None:
            return with_process(state, number, Process((entry,), end, 0))
        done = ended(state, number)
        if state.lock != number:
            return done
        done = done._replace(head=end)
        return told(closed(done, x), x, -1) if known == "closed" else told(done, x, int(known))

    def _unanswered_put(self, state: Plain, number: int) -> Plain:
        """It arrives later or never. The instance sends it once more, until it gives up, which is
        as if it had crashed."""
        work, head, done = state.processes[number - 1]
        entry, version = work[done], head + done + 1
        if version == len(state.log) + 1:
            state = state._replace(late=state.late | 1 << entry)
        if self._defect is Defect.LATE_PUT_NOT_AWAITED:
            return with_process(state, number, Process(work[done:], version, 0))
        if self._defect is Defect.UNKNOWN_TAKEN_FOR_FAILURE and entry < 2:
            return told(ended(state, number), entry, -1)
        return state

    def _commit(self, state: Plain, number: int) -> Plain:
        work, head, _ = state.processes[number - 1]
        after = self._unanswered_commit(state, number)
        for version, entry in enumerate(work, start=head + 1):
            after = told(after, entry % 2, -1 if entry in FENCES else version)
        return after

    def _unanswered_commit(self, state: Plain, number: int) -> Plain:
        work, head, done = state.processes[number - 1]
        after = ended(state, number)._replace(head=max(state.head, head + done))
        for entry in work:
            if entry in FENCES:
                after = closed(after, entry - 2)
        return after

    def _land(self, state: Plain, entry: int) -> Plain:
        """The entry is the log's next version."""
        log = state.log
        if entry < 2:
            if entry in log:
                raise Broken(f"{NAMES[entry]} landed as {log.index(entry) + 1} and {len(log) + 1}")
            if state.told[entry] == -1:
                raise Broken(f"{NAMES[entry]} landed, and it was told that it never would")
            found = judged(self._kinds[entry], entry, log, 0)
            if found != "ready":
                raise Broken(f"{NAMES[entry]} landed as {len(log) + 1}, where it is {found}")
        return state._replace(log=(*log, entry), late=0)
