"""The requests of one writer, as bytes: a commit's head and body but for what varies."""

from typing import Protocol

import msgspec

from benchmarks.load.plan import Plan

STATS = (
    '{"numRecords":120,"minValues":{"id":14000000,"value":-3.1415926,"p":"2026-11-20"},'
    '"maxValues":{"id":14000119,"value":2718.2818,"p":"2026-11-20"},'
    '"nullCount":{"id":0,"value":3,"p":0}}'
)
"""Of about 200 bytes, as small Parquet files have them."""
_ID = "@@@@@@@@"
_READ_VERSION = '"######"'
# The predicted length of a read version: JSON takes blanks before a number.
_DIGITS = 8


class Requests(Protocol):
    """A writer's next request, and what became of the one before."""

    table: str

    def next(self) -> bytes:
        """A request that was not made before, with an id of its own."""

    def same(self) -> bytes:
        """The last one again."""

    def landed(self, version: int) -> None: ...

    def conflicted(self, answer: bytes) -> bool:
        """Whether a conflict is to be expected of such a request."""


class Appends:
    """Blind appends of one file each."""

    def __init__(self, plan: Plan, table: str, *, writer: int) -> None:
        self.table = table
        path = f"part-{plan.name}-{writer:04}-{_ID}-c000.snappy.parquet"
        request = _request(
            plan,
            table,
            {
                "operation": "WRITE",
                "transaction_id": f"{plan.name}-{writer:04}-{_ID}",
                "actions": [{"add": add_action(path)}],
            },
        )
        self._parts = request.split(_ID.encode())
        self._count = 0
        self._last = b""

    def next(self) -> bytes:
        self._count += 1
        self._last = (b"%08d" % self._count).join(self._parts)
        return self._last

    def same(self) -> bytes:
        return self._last

    def landed(self, version: int) -> None:
        pass

    def conflicted(self, answer: bytes) -> bool:
        return False


class Overwrites:
    """Overwrites of one partition: reads it, removes its file, adds one."""

    def __init__(self, plan: Plan, table: str, *, writer: int) -> None:
        self.table = table
        self._partition = partition_of(writer)
        values = {"p": self._partition}
        path = f"p={self._partition}/part-{plan.name}-{_ID}.parquet"
        added = {"add": {**add_action(path), "partitionValues": values}}
        removed = {
            "remove": {
                "path": "$$$$",
                "deletionTimestamp": 1763700000000,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": values,
                "size": added["add"]["size"],
            }
        }
        body = {
            "operation": "WRITE",
            "operation_parameters": {"mode": "Overwrite", "predicate": f"p = '{self._partition}'"},
            "transaction_id": f"{plan.name}-{writer:04}-{_ID}",
            "read_version": "######",
            "reads": {"predicates": [f"p = '{self._partition}'"]},
        }
        self._first = _request(plan, table, {**body, "actions": [added]})
        self._then = _request(plan, table, {**body, "actions": [removed, added]}, {"$$$$": path})
        self._count = 0
        self._at = 0
        self._old: bytes | None = None
        self._last = b""

    def next(self) -> bytes:
        self._count += 1
        number = b"%08d" % self._count
        request = self._first if self._old is None else self._then.replace(b"^^^^^^^^", self._old)
        request = request.replace(_ID.encode(), number)
        self._last = request.replace(_READ_VERSION.encode(), b"%8d" % self._at)
        return self._last

    def same(self) -> bytes:
        return self._last

    def landed(self, version: int) -> None:
        self._old, self._at = b"%08d" % self._count, version

    def conflicted(self, answer: bytes) -> bool:
        """A writer reads again after one, as a job would; nobody else writes its partition, so
        what it finds there is its own last file, at a version that it need not know."""
        return True


def appends(plan: Plan, table: str, *, writer: int) -> Requests:
    return Appends(plan, table, writer=writer)


def partition_of(writer: int) -> str:
    return f"w{writer:03}"


def add_action(path: str) -> dict[str, object]:
    return {
        "path": path,
        "partitionValues": {},
        "size": 23172,
        "modificationTime": 1763700000000,
        "dataChange": True,
        "stats": STATS,
    }


def _request(
    plan: Plan, table: str, body: dict[str, object], replaced: dict[str, str] | None = None
) -> bytes:
    content = msgspec.json.encode(body).decode()
    for placeholder, text in (replaced or {}).items():
        content = content.replace(placeholder, text.replace(_ID, "^^^^^^^^"))
    assert len(_READ_VERSION) == _DIGITS
    return (
        f"POST /api/v1/tables/{table}/commits HTTP/1.1\r\n"
        f"Host: {plan.host}:{plan.port}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n{content}"
    ).encode("ascii")
