"""Lines of the log, and schemas, as JSON has them. Fields go by their names in the log."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

TABLE_ID = "11111111-2222-4333-8444-555555555555"
ONE_RECORD = '{"numRecords":1}'

Line = dict[str, Any]


def add(path: str = "a", partition: Mapping[str, str | None] | None = None, **fields: Any) -> Line:
    """An add of one row; a field that is given as None is left out."""
    body = {
        "path": path,
        "partitionValues": dict(partition or {}),
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": ONE_RECORD,
        **fields,
    }
    return {"add": {name: value for name, value in body.items() if value is not None}}


def remove(path: str = "a", **fields: Any) -> Line:
    return {"remove": {"path": path, "deletionTimestamp": 4, "dataChange": True, **fields}}


def removal(path: str, partition: Mapping[str, str | None], **fields: Any) -> Line:
    """A remove that says all of the file that it takes away."""
    told = {"extendedFileMetadata": True, "partitionValues": dict(partition), "size": 10}
    return remove(path, **{**told, **fields})


def cdc(path: str = "_change_data/c", **fields: Any) -> Line:
    body = {"path": path, "partitionValues": {}, "size": 1, "dataChange": False, **fields}
    return {"cdc": body}


def vector(name: str = "vBn[lx{q8@P<9BNH/isA", **fields: Any) -> dict[str, Any]:
    """A deletion vector descriptor, for `deletionVector=`."""
    body = {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40}
    return {**body, "cardinality": 1, **fields}


def inline(data: str) -> dict[str, Any]:
    """The descriptor of a deletion vector that stands in it."""
    return {"storageType": "i", "pathOrInlineDv": data, "sizeInBytes": 1, "cardinality": 1}


def wide(records: int = 10, **fields: Any) -> str:
    """Statistics as a file with a deletion vector has them."""
    return json.dumps({"numRecords": records, "tightBounds": False, **fields})


def column(name: str, type_: Any = "integer", *, nullable: bool = True, **metadata: Any) -> Any:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def struct(*columns: Any) -> dict[str, Any]:
    """A schema. A column is a name, an integer's then, or what `column` makes."""
    return {
        "type": "struct",
        "fields": [column(one) if isinstance(one, str) else one for one in columns],
    }


def metadata(
    columns: Iterable[Any] = ("v",),
    partition_by: Iterable[str] = (),
    properties: Mapping[str, str] | None = None,
    **fields: Any,
) -> Line:
    """A metaData action of columns as `struct` takes them."""
    body = {
        "id": TABLE_ID,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct(*columns)),
        "partitionColumns": list(partition_by),
        "configuration": dict(properties or {}),
        "createdTime": 1_700_000_000_000,
        **fields,
    }
    return {"metaData": body}


def protocol(
    reader: int = 1,
    writer: int = 2,
    *,
    readers: Iterable[str] | None = None,
    writers: Iterable[str] | None = None,
) -> Line:
    body: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if readers is not None:
        body["readerFeatures"] = list(readers)
    if writers is not None:
        body["writerFeatures"] = list(writers)
    return {"protocol": body}
