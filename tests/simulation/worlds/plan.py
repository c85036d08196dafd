"""What a world is: drawn from its seed before anything happens, and small, so that worlds are many.

A world has few of the troubles that there are, each of them often: one that has all of them at once
does nothing but fail.
"""

import random
from dataclasses import dataclass, replace
from enum import Enum

from tests.simulation.ports.network import CALM, TEMPERS
from tests.simulation.ports.store import NO_STORE_FAULTS, StoreFaults
from tests.simulation.ports.unit import NO_DATABASE_FAULTS, DatabaseFaults


class Deed(Enum):
    """What happens to a world beside its clients' work."""

    CRASH = "an instance is killed, and started again after a while"
    STOP = "an instance is stopped, and continued after a while"
    END_SESSIONS = "the database ends all its sessions"
    CLOCK = "an instance's clock jumps"
    FOREIGN = "another writer appends past the service"
    FOREIGN_NULLABLE = "another writer makes the partition column nullable past the service"
    FOREIGN_MANY = "another writer has appended some dozens of versions past the service"
    CLEAN_UP = "others write a checkpoint and delete the commits before it that are not young"
    FORGET = "the table is forgotten"
    REGISTER = "the folder is registered under its name"
    REBUILD = "the index of the table is made anew"
    RELEASE = "a quarantined table is released"
    CREATE = "the table is created at its place"
    DELETE = "the folder of a table that nobody knows is deleted by its owner"
    BACKUP = "the database is backed up"
    RESTORE = "the database goes back to its backup"
    BRING_BACK = "the same, to before the folder of its table was deleted"


class Kind(Enum):
    """What a client works on."""

    APPEND = "adds a file, and read nothing"
    NULL = "adds a file of the null partition, which the table at first forbids"
    NULLABLE = "makes the partition column nullable"
    SUMMARY = "reads a partition, and adds what it makes of it to another one"
    REGISTER = "replaces the one file of a partition by another"
    AHEAD = "adds a file, having read the log by itself to its end"
    OLD = "proposes again what landed long ago"
    JOB = "writes files under an id of its own by a Spark job, dies, and does it again"
    ABORTED = "proposes again what was aborted long ago"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A client's: its works, in their order. `shares` is another client whose first work it does,
    too, under the same id; `aborts` says that it gives the id up when it is in doubt, `asks_again`
    that it proposes the same once more at the end; `number` is its client's, where others before it
    were left out."""

    kinds: tuple[Kind, ...]
    starts_s: float = 0.0
    shares: int | None = None
    aborts: bool = False
    asks_again: bool = False
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`deeds` happen before the event of their number. `read_s` is how long the store takes for
    each read, however well everything is; `one_at_first` has all clients begin at one instance;
    `checks_early` has everything that somebody committed since be looked through before the table's
    lock, however little it is."""

    seed: int
    catalog_managed: bool
    tasks: tuple[Task, ...]
    deeds: tuple[tuple[int, Deed], ...] = ()
    temper: tuple[float, ...] = CALM
    database: DatabaseFaults = NO_DATABASE_FAULTS
    store: StoreFaults = NO_STORE_FAULTS
    unsynced: float = 0.0
    lost_answers: float = 0.0
    checks_early: bool = False
    gateway: float = 0.0
    read_s: float = 0.0
    instances: int = 2
    one_at_first: bool = False

    def without_deed(self, at: int) -> "Plan":
        return replace(self, deeds=self.deeds[:at] + self.deeds[at + 1 :])

    def without_task(self, at: int) -> "Plan":
        numbered = [
            replace(task, shares=None, number=number if task.number is None else task.number)
            for number, task in enumerate(self.tasks)
        ]
        tasks = numbered[:at] + numbered[at + 1 :]
        return replace(self, tasks=tuple(tasks))


# Stories that go together, of which a world has one or two; the rest of it is chance.
_STORIES: tuple[tuple[Deed, ...], ...] = (
    (Deed.CRASH,),
    (Deed.CRASH, Deed.CRASH),
    (Deed.STOP,),
    (Deed.STOP, Deed.END_SESSIONS),
    (Deed.END_SESSIONS,),
    (Deed.CLOCK,),
    (Deed.REBUILD,),
    (Deed.FORGET,),
    (Deed.FORGET, Deed.REGISTER),
    (Deed.BACKUP, Deed.RESTORE),
    (Deed.BACKUP, Deed.RESTORE, Deed.REBUILD),
    (Deed.FORGET, Deed.CREATE),
    (Deed.FORGET, Deed.DELETE, Deed.CREATE),
)
_OF_PLAIN: tuple[tuple[Deed, ...], ...] = (
    (Deed.FOREIGN,),
    (Deed.FOREIGN, Deed.FOREIGN),
    (Deed.FOREIGN_NULLABLE,),
    (Deed.FOREIGN, Deed.CLEAN_UP, Deed.REBUILD),
    (Deed.FOREIGN, Deed.CLEAN_UP, Deed.FORGET, Deed.REGISTER),
    (Deed.FOREIGN_NULLABLE, Deed.STOP),
    (Deed.FOREIGN_MANY,),
    (Deed.FOREIGN, Deed.CLEAN_UP),
    (Deed.CLEAN_UP, Deed.REBUILD),
    (Deed.CLEAN_UP, Deed.FORGET, Deed.REGISTER),
    (Deed.CLEAN_UP, Deed.FORGET, Deed.CREATE),
)
MOST_STEPS = 120
"""Of the events before which deeds begin; a world without trouble has about as many."""


def draw(seed: int) -> Plan:
    dice = random.Random(seed * 7919 + 1)
    managed = dice.random() < 0.35
    stories = _STORIES if managed else (*_STORIES, *_OF_PLAIN)
    deeds: list[tuple[int, Deed]] = []
    for _ in range(dice.choice((0, 1, 1, 2))):
        story = dice.choice(stories)
        steps = sorted(dice.randrange(1, MOST_STEPS) for _ in story)
        deeds += zip(steps, story, strict=True)
    unsynced = read_s = 0.0
    chance = dice.random()
    if chance < 0.04:
        # Only who is stopped for long holds what nobody ends.
        unsynced = 0.9
        deeds += [(dice.randrange(1, MOST_STEPS // 2), Deed.STOP) for _ in range(2)]
    elif chance < 0.06 and not managed:
        read_s = 0.5
        deeds.append((dice.randrange(1, MOST_STEPS // 2), Deed.FOREIGN_MANY))
    crowd = dice.random() < 0.2
    tasks = _tasks(dice, crowd=crowd, managed=managed)
    if not managed and dice.random() < 0.06:
        # What depends on another's commit of the same group, which may be cut off between the two.
        crowd, tasks = True, _DEPENDING
        deeds.append((dice.randrange(1, MOST_STEPS // 3), dice.choice((Deed.STOP, Deed.CRASH))))
    return Plan(
        seed=seed,
        catalog_managed=managed,
        tasks=tasks,
        deeds=tuple(sorted(deeds, key=lambda deed: deed[0])),
        temper=dice.choice((CALM, *TEMPERS)),
        database=_database(dice),
        store=_store(dice),
        unsynced=unsynced,
        lost_answers=0.2 if dice.random() < 0.25 else 0.0,
        gateway=0.2 if dice.random() < 0.05 else 0.0,
        read_s=read_s,
        one_at_first=crowd,
    )


_DEPENDING = (
    Task(kinds=(Kind.APPEND,)),
    Task(kinds=(Kind.NULLABLE,)),
    Task(kinds=(Kind.NULL,), starts_s=0.003),
    Task(kinds=(Kind.NULL,), starts_s=0.02),
)
_LIKELY = {
    Kind.APPEND: 6,
    Kind.NULL: 2,
    Kind.NULLABLE: 1,
    Kind.SUMMARY: 2,
    Kind.REGISTER: 2,
    Kind.OLD: 1,
    Kind.ABORTED: 1,
    Kind.JOB: 1,
}


def _tasks(dice: random.Random, *, crowd: bool, managed: bool) -> tuple[Task, ...]:
    likely = _LIKELY if managed else {**_LIKELY, Kind.AHEAD: 1}
    count = dice.choice((3, 4)) if crowd else dice.choice((1, 2, 2, 3))
    starts_s = (0.0, 0.001) if crowd else (0.0, 0.0, 0.001, 0.02, 0.3, 15.0, 400.0)
    tasks = []
    for number in range(count):
        kinds = dice.choices(
            tuple(likely), weights=tuple(likely.values()), k=dice.choice((1, 1, 1, 2))
        )
        tasks.append(
            Task(
                kinds=tuple(kinds),
                starts_s=dice.choice(starts_s),
                shares=0 if number and dice.random() < 0.15 else None,
                aborts=dice.random() < 0.1,
                asks_again=dice.random() < 0.3,
            )
        )
    return tuple(tasks)


def _database(dice: random.Random) -> DatabaseFaults:
    chance = dice.random()
    if chance < 0.6:
        return NO_DATABASE_FAULTS
    if chance < 0.7:
        return DatabaseFaults(statement=(0.93, 0.07))
    return DatabaseFaults(commits=(0.55, 0.2, 0.05, 0.1, 0.1))


def _store(dice: random.Random) -> StoreFaults:
    chance = dice.random()
    if chance < 0.5:
        return NO_STORE_FAULTS
    if chance < 0.65:
        return StoreFaults(puts=(0.6, 0.2, 0.1, 0.1))
    if chance < 0.9:
        return StoreFaults(puts=(0.35, 0.05, 0.05, 0.25, 0.3))
    return StoreFaults(puts=(0.6, 0.1, 0.1, 0.0, 0.1, 0.1), reads=(0.9, 0.1))
