"""Schemas as callers have them, turned into Delta's JSON text."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from tidegate.errors import InvalidRequest
from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.schema.table_schema import StructType, to_json


@runtime_checkable
class HasJson(Protocol):
    """Anything that spells itself as a Delta struct, as Spark's `StructType` does."""

    def json(self) -> str: ...


SchemaLike = str | Mapping[str, Any] | StructType | HasJson
"""A Delta struct as JSON text, as the object that text holds, as `tidegate_protocol` parses it,
or as Spark has it."""


def schema_text(schema: SchemaLike) -> str:
    """The schema's JSON text. Only its being a JSON object is checked here.

    Raises `InvalidRequest`, and `TypeError` for what is no schema at all.
    """
    match schema:
        case str():
            text = schema
        case StructType():
            text = to_json(schema)
        case Mapping():
            text = msgspec.json.encode(dict(schema)).decode()
        case HasJson():
            text = schema.json()
        case _:
            raise TypeError(
                "expected a schema as JSON text, a mapping or something with .json(), "
                f"found {type(schema).__name__}"
            )
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidRequest(
            f"the schema is no JSON object: {error}; found {excerpt(text)}",
            code=Code.INVALID_SCHEMA,
            definite=True,
        ) from None
    return text
