"""A window of commits judges as the rules do, whatever is in it and was.

The rules themselves (`checker.check_conflicts`, tested on their own) say what is right here.
"""

import json
from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.actions import add, cdc, domain, features, metadata, remove, txn, unknown
from tests.builders.ledgers import winner
from tests.builders.lines import vector, wide
from tests.builders.proposals import proposal, reads
from tests.protocol.window_tables import BACKFILL, SUPPORTED, TABLES, at
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.conflict.window import CommitWindow
from tidegate_protocol.log.actions import Action
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import (
    Conflict,
    IsolationLevel,
    PreparedTransaction,
    WinningCommit,
)

# What winners and transactions do. Paths and partitions are few, so that some of them meet, and
# most do little, so that not all of them do.

PATHS = ["a", "b", "c%2Dd", "c-d", *"efghijklmnop"]
PARTITIONS = ["1", "2", "3", "4", "5", "6", "7", None]
APPLICATIONS = ["one", "two", "three"]
PREDICATES = ["x = 1", "x = 2", "x IS NULL", "x > 5 AND v = 5", "v = 1", "false"]


def some(rng: Random, values: Sequence[str], *counts: int) -> list[str]:
    return rng.sample(values, rng.choice(counts))


def once_in(rng: Random, times: int) -> bool:
    return rng.randrange(times) == 0


def file_actions(rng: Random, table: str, prefix: str) -> tuple[Action, ...]:
    change = rng.random() < 0.7
    removes = [remove(path, dataChange=change) for path in some(rng, PATHS, 0, 0, 1, 2)]
    adds = [
        add(f"{prefix}{name}", partition_of(table, rng), stats=stats_of(rng), dataChange=change)
        for name in some(rng, ["a", "b", "c"], 0, 1, 1, 2)
    ]
    if once_in(rng, 3):
        adds.append(again(rng, table, [each.path for each in removes], change=change))
    return (*removes, *adds)


def again(rng: Random, table: str, removed: Sequence[str], *, change: bool) -> Action:
    """An add of a path that others name, too."""
    fields = {"stats": stats_of(rng)}
    free = [
        path for path in PATHS if path not in removed and path.replace("%2D", "-") not in removed
    ]
    if table == "vectors" and rng.random() < 0.6:
        free = PATHS
        fields = {"stats": wide(), "deletionVector": vector(offset=rng.choice([1, 2]))}
    return add(rng.choice(free), partition_of(table, rng), dataChange=change, **fields)


def partition_of(table: str, rng: Random) -> dict[str, str | None]:
    return {"x": rng.choice(PARTITIONS)} if TABLES[table][0].partition_columns else {}


def stats_of(rng: Random) -> str:
    bounds = {"v": rng.choice([1, 5])}
    return json.dumps({"numRecords": 1, "minValues": bounds, "maxValues": bounds})


def other_actions(rng: Random, table: str) -> tuple[Action, ...]:
    """What makes a winner more than a quiet one; some go on after the first few."""
    old, protocol = TABLES[table]
    properties = rng.choice([{"delta.x": "1"}, {"delta.enableRowTracking": "true"}])
    return (
        rng.choice(
            [
                features(*protocol.writer_features, "rowTracking"),
                features(*SUPPORTED, "vacuumProtocolCheck", readers=["vacuumProtocolCheck"]),
                domain("e"),
                domain("delta.rowTracking", '{"rowIdHighWaterMark":7}'),
                domain("d"),
                metadata(["x", "v"], old.partition_columns, {**old.configuration, **properties}),
                unknown(),
            ]
        ),
    )


def random_winner(rng: Random, table: str, version: int) -> WinningCommit:
    actions = file_actions(rng, table, f"v{version}-")
    operation = rng.choice(["WRITE", "WRITE", "MERGE", BACKFILL, None])
    if once_in(rng, 4):
        actions += (txn(rng.choice(APPLICATIONS)),)
    if once_in(rng, 12):
        actions += other_actions(rng, table)
    if once_in(rng, 8):
        actions += (cdc(),)
    if operation == BACKFILL:
        again = {"baseRowId": 7, "defaultRowCommitVersion": version, "dataChange": False}
        actions += (add("mine-a", partition_of(table, rng), **again),)
    return winner(*actions, version=version, operation=operation, blind=rng.random() < 0.5)


def random_transaction(rng: Random, table: str, version: int) -> PreparedTransaction | None:
    """A transaction that read this version, mostly one that reads something."""
    old, _ = TABLES[table]
    what = reads(
        *some(rng, PREDICATES, 0, 1, 1, 2),
        whole_table=once_in(rng, 12),
        files=some(rng, PATHS, 0, 0, 1, 2),
        app_ids=some(rng, APPLICATIONS, 0, 0, 1),
    )
    actions = file_actions(rng, table, "mine-")
    if once_in(rng, 8):
        described = metadata(["x", "v"], old.partition_columns, old.configuration, description="d")
        actions += (rng.choice([unknown(), domain("d"), described]),)
    offer = proposal(
        *actions,
        read_version=version,
        reads=reads() if once_in(rng, 6) else what,
        isolation_level=rng.choice([None, None, IsolationLevel.SERIALIZABLE]),
        operation=rng.choice(["WRITE", "OPTIMIZE"]),
    )
    mine = prepare(offer, at(table, version))
    return mine if isinstance(mine, PreparedTransaction) else None


@given(st.integers(0, 2**64))
@settings(max_examples=3 * settings.default.max_examples)
def test_it_judges_as_the_rules_do(seed):
    rng = Random(seed)
    table = rng.choice(sorted(TABLES))
    window = CommitWindow(after=rng.choice([0, 9]))
    model: list[WinningCommit] = []
    for _ in range(25):
        match rng.choice("aaaaajjjjjdt"):
            case "a":
                model.append(random_winner(rng, table, window.through + 1))
                window.append(model[-1])
            case "d":
                version = max(window.after, window.through - rng.randrange(4))
                window.drop_after(version)
                model = [each for each in model if each.version <= version]
            case "t":
                commits = max(len(model) - rng.randrange(3), 0)
                window.trim(commits=commits, weight=rng.choice([10, 20, 1000]))
                model = [each for each in model if each.version > window.after]
                assert len(model) <= commits
            case _:
                version = rng.randint(window.after, window.through)
                mine = random_transaction(rng, table, version)
                if mine is not None:
                    unseen = [each for each in model if each.version > version]
                    assert window.check_conflicts(mine) == check_conflicts(mine, unseen)
        assert list(window.winners(window.after)) == model
        assert window.weight == sum(map(weight, model))


@given(st.integers(0, 2**64))
def test_a_transaction_that_went_part_of_the_way_goes_on(seed):
    rng = Random(seed)
    table = rng.choice(sorted(TABLES))
    mine = random_transaction(rng, table, 0)
    window, model = CommitWindow(after=0), []
    for version in range(1, 9):
        model.append(random_winner(rng, table, version))
        window.append(model[-1])
        if mine is None or rng.random() < 0.3:
            continue
        outcome = window.check_conflicts(mine)
        assert outcome == check_conflicts(mine, model[mine.checked_through :])
        mine = None if isinstance(outcome, Conflict) else outcome


def weight(each: WinningCommit) -> int:
    metadata = 0 if each.metadata is None else 1 + 3 * len(each.metadata.raw) // 1024
    return (
        1
        + metadata
        + sum(
            len(held) if isinstance(held, tuple) else held is not None
            for held in (
                each.adds,
                each.removes,
                each.txns,
                each.domains,
                each.unknown,
                each.protocol,
            )
        )
    )
