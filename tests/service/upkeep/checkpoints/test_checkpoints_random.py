"""Random logs: a checkpoint of any kind, at any version, holds what the commits come to, and so do
the commits that follow it."""

import itertools
import shutil
import time

import deltalake
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.by_x import add, add_of_values
from tests.service.tables.delta_logs import DeltaLog, folded, metadata, names
from tests.service.tables.registering.test_register_random import one_of_each
from tests.service.world import make_world
from tidegate_protocol.log.actions import (
    Action,
    Add,
    DeletionVector,
    Protocol,
    Remove,
    file_key,
)
from tidegate_protocol.log.file_names import V2Checkpoint, parse
from tidegate_protocol.log.segment import Checkpoint, Listing, choose_segment
from tidegate_service.core.checkpoints.checkpoint import CheckpointLayout, write_checkpoint
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

NOW_MS = int(time.time() * 1000)
LONG_AGO = NOW_MS - 30 * 24 * 60 * 60 * 1000
FEATURES = frozenset({"v2Checkpoint", "deletionVectors"})
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=FEATURES,
    writer_features=FEATURES,
)
KINDS = ["classic", "v2"]

_folders = itertools.count()

paths = st.sampled_from(["a", "b", "c%20c", "x=1/d", "\u00e9", "x=2/e"])
vectors = st.none() | st.sampled_from(
    [
        DeletionVector(
            storage_type="i", path_or_inline_dv=text, size_in_bytes=1, cardinality=1, offset=offset
        )
        for text, offset in (("v", None), ("w", 3))
    ]
)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        lambda path, vector, fields: add_of_values(path, deletion_vector=vector, **fields),
        paths,
        vectors,
        st.fixed_dictionaries(
            {"size": st.integers(1, 2**40), "x": st.none() | st.sampled_from(["1", "2"])},
            optional={
                "stats": st.none() | st.just('{"numRecords":2,"nullCount":{"v":1}}'),
                "tags": st.dictionaries(
                    st.sampled_from(["", "k", "é"]), st.none() | st.just("t"), max_size=2
                ),
                "base_row_id": st.integers(0, 9),
                "default_row_commit_version": st.integers(0, 9),
                "clustering_provider": st.just("liquid"),
            },
        ),
    ),
    st.builds(
        lambda path, vector, at: Remove(
            path=path, data_change=True, deletion_vector=vector, deletion_timestamp=at
        ),
        paths,
        vectors,
        st.sampled_from([NOW_MS, NOW_MS - 1, LONG_AGO]),
    ),
)
commits = st.lists(
    st.lists(actions, min_size=1, max_size=5).map(one_of_each), min_size=0, max_size=8
)


def tombstones(history):
    """At each version, what of the files that were live was removed not long ago."""
    live, gone = set(), {}
    for commit in history:
        for action in commit:
            if isinstance(action, Add):
                live.add(file_key(action))
                gone.pop(file_key(action), None)
            elif isinstance(action, Remove) and file_key(action) in live:
                live.discard(file_key(action))
                gone[file_key(action)] = action.deletion_timestamp
        yield {key: at for key, at in gone.items() if at != LONG_AGO}


def comparable(add_: Add) -> Add:
    return msgspec.structs.replace(add_, raw=b"", data_change=False, tags=add_.tags or None)


async def held(log, version):
    """The actions of the version's checkpoint, by our own reader."""
    listing = Listing()
    found = []
    async for entries in log.entries():
        found += [(one.name, one.size) for one in entries]
    listing.take(
        [(name, size) for name, size in found if name.startswith(f"{version:020d}.checkpoint")]
    )
    files = choose_segment(listing).checkpoint
    assert isinstance(files, Checkpoint)
    return files, [
        action async for batch in snapshot_actions(log, files, location="") for action in batch
    ]


@settings(
    # Each is a log and up to four checkpoints: ten of the usual hundred.
    max_examples=settings().max_examples // 10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rest=commits,
    kind=st.sampled_from(KINDS),
    at=st.sets(st.integers(0, 8), min_size=1, max_size=4),
    files_a_page=st.sampled_from([1, 2, 5_000]),
    as_struct=st.booleans(),
)
async def test_it_is_the_fold_of_the_commits(
    engine, tmp_path, *, rest, kind, at, files_a_page, as_struct
):
    index = PostgresIndex(engine, limits=IndexLimits(snapshot_files_a_page=files_a_page))
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    properties = {
        "delta_checkpointPolicy": kind,
        "delta_checkpoint_writeStatsAsStruct": str(as_struct).lower(),
    }
    history = [[PROTOCOL, metadata(**properties), add("first"), add("second")], *rest]
    folds, gone = tuple(folded(history)), tuple(tombstones(history))
    log = DeltaLog(tmp_path / f"t{next(_folders)}")
    for version, commit in enumerate(history):
        log.commit(version, *commit)
    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    layout = CheckpointLayout(sidecar_files=2)
    versions = sorted(version for version in at if version < len(history))
    try:
        for version in versions:
            written = await write_checkpoint(
                index, world.context.storage, table, version, layout=layout
            )
            assert written.version == version
            assert written.kind == kind
            files, read = await held(world.context.storage.log(log.location), version)
            assert isinstance(parse(files.files[0]), V2Checkpoint) == (kind == "v2")
            adds = [one for one in read if isinstance(one, Add)]
            assert {file_key(one): comparable(one) for one in adds} == {
                file_key(one): comparable(one) for one in folds[version].files.values()
            }
            assert len(adds) == len(folds[version].files)
            removes = {
                file_key(one): one.deletion_timestamp for one in read if isinstance(one, Remove)
            }
            assert removes == gone[version]
        if versions:
            read_by_deltalake(log, tmp_path, versions[-1], folds[-1])
    finally:
        await forget_table(world.context, table.id)


def read_by_deltalake(log, tmp_path, version, expected) -> None:
    """What it makes of the checkpoint and the commits that follow it."""
    copy = tmp_path / f"copy-{next(_folders)}"
    shutil.copytree(log.table, copy)
    for earlier in range(version):
        (copy / "_delta_log" / f"{earlier:020d}.json").unlink()
    try:
        theirs = deltalake.DeltaTable(copy)
        found = theirs.get_add_actions()["path"].to_pylist()
    finally:
        shutil.rmtree(copy)
    assert len(found) == len(expected.files)
