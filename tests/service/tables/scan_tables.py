"""Generated tables for tests of scans: what pruning must not lose has every odd shape."""

import json
import random

from tests.builders.by_x import PROTOCOL, add, remove
from tests.service.commit.committing import land, new_table, ratified
from tidegate_protocol.log.actions import Add, Metadata
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord

VALUES = [
    None,
    "",
    "a",
    "b\\",
    "ü/\u2028",
    "\u0001",
    "x" * 600,
    "x" * 601,
    "\U0001f30a",
    "__HIVE__",
]
NUMBERS = [None, "1", "2", "10", "no number"]
STATISTICS = [
    None,
    "{}",
    "no statistics",
    '{"numRecords":3,"minValues":{"v":1},"maxValues":{"v":5},"nullCount":{"v":0}}',
    '{"numRecords":3,"minValues":{"v":7,"w":1},"maxValues":{"v":9},"nullCount":{"v":3}}',
    '{"numRecords":2,"nullCount":{"v":2}}',
    '{"minValues":[1]}',
    '{"numRecords":3,"tightBounds":false,"minValues":{"v":"1"},"maxValues":{"v":null}}',
]
PREDICATES = [
    ("p = 'a'",),
    ("p is null",),
    ("p = 'b\\\\'", "n > 1"),
    ("n between 1 and 2 and v > 6",),
    ("n = 10 or v = 2",),
    ("v is null",),
    ("v > 100", "p = 'a'"),
    ("length(p) > 600",),
    ("unheard_of(p)",),
    ("p >= 'a' and unheard_of(v)", "false"),
    ("true",),
    ("false",),
    (),
]


def table_metadata(*, mapped: bool, partition_columns: tuple[str, ...] = ("p", "n")) -> Metadata:
    """Columns p (string), n (integer) and v (long); `mapped` gives them physical names."""

    def field(number: int, name: str, type_: str) -> dict[str, object]:
        mapping = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical(name, mapped=mapped),
        }
        return {
            "name": name,
            "type": type_,
            "nullable": True,
            "metadata": mapping if mapped else {},
        }

    fields = [field(1, "p", "string"), field(2, "n", "integer"), field(3, "v", "long")]
    return Metadata(
        id="00000000-0000-0000-0000-000000000002",
        schema_string=json.dumps({"type": "struct", "fields": fields}),
        partition_columns=partition_columns,
        configuration={"delta.columnMapping.mode": "name"} if mapped else {},
    )


def physical(name: str, *, mapped: bool) -> str:
    return f'col-"{name}"' if mapped and name == "p" else f"col-{name}" if mapped else name


async def create(index: Index, metadata: Metadata) -> TableRecord:
    """A plain table of this metadata, without files."""
    async with index.creation_section(new_table()) as section:
        await section.append(ratified(0, PROTOCOL, metadata))
        await section.save()
    return section.table


async def generated(
    index: Index, random_: random.Random, *, mapped: bool, versions: int = 6
) -> TableRecord:
    """A table whose files come, are given deletion vectors and go, version by version."""
    table = await create(index, table_metadata(mapped=mapped))
    live: dict[str, str | None] = {}
    for version in range(1, versions + 1):
        actions: dict[str, list[object]] = {}
        for number in range(random_.randint(1, 12)):
            path = f"f{random_.randint(0, 20)}" if random_.random() < 0.4 else f"{version}-{number}"
            actions[path] = [_added(random_, path, mapped=mapped, vector=None)]
            if live.get(path) is not None:
                actions[path].insert(0, remove(path, dv=live[path]))
            live[path] = None
        for path in random_.sample(sorted(live), k=len(live) // 4):
            if path in actions:
                continue
            gone = remove(path, dv=live[path])
            if random_.random() < 0.5:
                vector = f"v{version}"
                actions[path] = [gone, _added(random_, path, mapped=mapped, vector=vector)]
                live[path] = vector
            else:
                actions[path] = [gone]
                del live[path]
        table = await land(index, table, *(one for some in actions.values() for one in some))
    return table


def _added(random_: random.Random, path: str, *, mapped: bool, vector: str | None) -> Add:
    values = {"p": random_.choice(VALUES), "n": random_.choice(NUMBERS)}
    named = [(physical(name, mapped=mapped), value) for name, value in values.items()]
    random_.shuffle(named)
    if random_.random() < 0.05:
        # As no writer should: some partition values are missing, or all.
        named = named[: random_.randint(0, 1)]
    stats = random_.choice(STATISTICS)
    if stats is not None and mapped:
        stats = stats.replace('"v"', '"col-v"')
    return add(path, dv=vector, partitionValues=dict(named), stats=stats)
