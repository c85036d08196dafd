"""Tables of the integer `x`, their partition, and the text `v`, and files of theirs, as values."""

from typing import Any

from tests.builders import actions, lines
from tidegate_protocol.log.actions import Add, Metadata, Remove

SCHEMA = lines.struct("x", lines.column("v", "string"))
PROTOCOL = actions.protocol()


def metadata(**configuration: str) -> Metadata:
    """Properties are named with `_` for `.`."""
    properties = {name.replace("_", "."): text for name, text in configuration.items()}
    return actions.metadata(SCHEMA["fields"], ["x"], properties)


METADATA = metadata()


def add(path: str, x: str | None = "1", *, dv: str | None = None, **fields: Any) -> Add:
    """`dv` names a deletion vector."""
    return actions.add(path, {"x": x}, **{"size": 10, **_vector(dv), **fields})


def add_of_values(path: str, x: str | None = "1", **values: Any) -> Add:
    """As `add`, made of the action's own values instead of a log line's."""
    fields: dict[str, Any] = {
        "path": path,
        "partition_values": {"x": x},
        "size": 10,
        "modification_time": 1,
        "data_change": True,
        "stats": '{"numRecords":1}',
    }
    return Add(**fields | values)


def remove(path: str, x: str | None = "1", *, dv: str | None = None, **fields: Any) -> Remove:
    """A remove that says all of the file that it takes away."""
    return actions.decoded(lines.removal(path, {"x": x}, **_vector(dv), **fields))


def _vector(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"deletionVector": lines.vector(name)}
