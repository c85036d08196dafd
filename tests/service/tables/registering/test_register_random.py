"""Random logs: whatever is left of one, its registration is the fold of its commits."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.builders.lines import inline
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of, names
from tests.service.tables.registering.test_register_logs import KINDS, assert_holds
from tests.service.world import make_world
from tidegate_protocol.log.actions import Action, DomainMetadata, Txn
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

_folders = itertools.count()

paths = st.sampled_from(["a", "b", "c%20c", "x=1/d", "\u00e9"])
vectors = st.sampled_from([{}, *({"deletionVector": inline(data)} for data in "vw")])
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        lambda path, vector, stats, size: add(path, stats=stats, size=size, **vector),
        paths,
        vectors,
        st.none() | st.just('{"numRecords":2}'),
        st.integers(0, 9),
    ),
    st.builds(lambda path, vector: remove(path, **vector), paths, vectors),
    st.builds(lambda version: Txn(app_id="app", version=version), st.integers(0, 9)),
    st.builds(
        lambda removed: DomainMetadata(domain="d", configuration="c", removed=removed),
        st.booleans(),
    ),
)


def one_of_each(commit: list[Action]) -> list[Action]:
    """A commit's actions name each thing once, as Delta's do."""
    found: dict[object, Action] = {}
    for action in commit:
        path = getattr(action, "path", None)
        vector = getattr(action, "deletion_vector", None)
        found[(path, vector and vector.unique_id) if path else type(action)] = action
    return list(found.values())


commits = st.lists(
    st.lists(actions, min_size=1, max_size=5).map(one_of_each), min_size=0, max_size=7
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rest=commits,
    changed=st.none() | st.integers(1, 7),
    checkpoints=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(sorted(KINDS))), max_size=3),
    clean_before=st.integers(0, 8),
)
async def test_it_is_the_fold_of_its_commits(
    index, tmp_path, *, rest, changed, checkpoints, clean_before
):
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    history: list[list[Action]] = [[PROTOCOL, metadata(), add("first")], *rest]
    if changed is not None and changed < len(history):
        history[changed].append(metadata(delta_appendOnly="false"))
    snapshots = tuple(folded(history))
    head = len(history) - 1
    log = DeltaLog(tmp_path / f"t{next(_folders)}")
    for version, commit in enumerate(history):
        log.commit(version, *commit)
    there = sorted({version for version, _ in checkpoints if version <= head})
    for version, kind in checkpoints:
        if version <= head:
            KINDS[kind](log, version, lines_of(snapshots[version]))
    # Log clean-up deletes commits that a checkpoint stands for.
    deleted = min(clean_before, there[-1] + 1) if there else 0
    for version in range(deleted):
        log.path(version).unlink()
    first = 0 if not deleted else min(v for v in there if v >= deleted - 1)

    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    try:
        await assert_holds(world, table, first, snapshots)
    finally:
        await forget_table(world.context, table.id)
