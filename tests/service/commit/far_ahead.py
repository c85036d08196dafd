"""Logs that other writers took far ahead of the index."""

import json

import psycopg

FAR = 40
PORTION = 15


def written_past(world, table, first, last, *, timestamp=1_700_000_000_000, ids=False):
    """Versions of another writer, each with a file of its own; without times if there is none."""
    for version in range(first, last + 1):
        info = {"operation": "WRITE", "operationParameters": {}}
        if timestamp is not None:
            info["timestamp"] = timestamp + version
        if ids:
            info["txnId"] = f"theirs-{version}"
        file = {"path": f"x=1/{version}", "partitionValues": {"x": "1"}, "size": 1}
        file |= {"modificationTime": 1, "dataChange": True}
        lines = [{"commitInfo": info}, {"add": file}]
        world.log_file(table, version).write_text("".join(json.dumps(o) + "\n" for o in lines))


async def times(world, table):
    rows = await world.context.index.history(table.id, from_version=0, to_version=None, limit=1_000)
    assert [row.version for row in rows] == list(range(len(rows)))[::-1]
    return [row.timestamp for row in reversed(rows)]


class Lock:
    """Whether the table's row is locked; asked before each read of the store."""

    def __init__(self, database_url, table):
        self._connection = psycopg.connect(database_url, autocommit=True)
        self._table = table
        self.held = []
        self.states = set()

    async def reading(self, version):
        try:
            query = "SELECT state FROM tables WHERE id = %s FOR UPDATE NOWAIT"
            (row,) = self._connection.execute(query, [self._table.id]).fetchall()
            self.states.add(row[0])
        except psycopg.errors.LockNotAvailable:
            self.held.append(version)
