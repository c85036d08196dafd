"""Hypothesis strategies for schemas and for values of their types."""

import datetime as dt
from decimal import Decimal

from hypothesis import strategies as st

from tidegate_protocol.schema import table_schema as s
from tidegate_protocol.schema.values import INTEGER_LIMITS, to_float32

STORED_PRIMITIVES = (
    s.BYTE,
    s.SHORT,
    s.INTEGER,
    s.LONG,
    s.FLOAT,
    s.DOUBLE,
    s.BOOLEAN,
    s.STRING,
    s.BINARY,
    s.DATE,
    s.TIMESTAMP,
    s.TIMESTAMP_NTZ,
)
"""Every primitive type without parameters that a data file can hold."""

decimal_types = st.integers(1, 38).flatmap(
    lambda precision: st.builds(s.DecimalType, st.just(precision), st.integers(0, precision))
)
stored_primitives = st.sampled_from(STORED_PRIMITIVES) | decimal_types
names = st.text(
    st.characters(codec="utf-8", exclude_characters=" ,;{}()\n\t=\0"), min_size=1, max_size=8
)
metadata = st.dictionaries(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["", "ä", '"']),
    max_size=2,
)


def structs(inner: st.SearchStrategy[s.DataType]) -> st.SearchStrategy[s.StructType]:
    """Structs with at least one field, no two names alike but for case."""
    fields = st.builds(s.Field, name=names, type=inner, nullable=st.booleans(), metadata=metadata)
    return st.lists(fields, min_size=1, max_size=4, unique_by=lambda field: field.name.lower()).map(
        lambda found: s.StructType(fields=tuple(found))
    )


def _nested(inner: st.SearchStrategy[s.DataType]) -> st.SearchStrategy[s.DataType]:
    return (
        structs(inner)
        | st.builds(s.ArrayType, element=inner, contains_null=st.booleans())
        | st.builds(s.MapType, key=inner, value=inner, value_contains_null=st.booleans())
    )


schemas = structs(st.recursive(stored_primitives, _nested, max_leaves=8))


def values(data_type: s.DataType) -> st.SearchStrategy[object]:
    """Every value of a stored primitive type that Python can hold."""
    if isinstance(data_type, s.DecimalType):
        limit = 10**data_type.precision - 1
        return st.integers(-limit, limit).map(
            # Made from digits: arithmetic on decimals rounds to the context's precision.
            lambda digits: Decimal(f"{digits}E-{data_type.scale}")
        )
    assert isinstance(data_type, s.PrimitiveType)
    if data_type.name in INTEGER_LIMITS:
        limit = INTEGER_LIMITS[data_type.name]
        return st.integers(-limit, limit - 1)
    return {
        s.FLOAT: st.floats().map(to_float32),
        s.DOUBLE: st.floats(),
        s.BOOLEAN: st.booleans(),
        s.STRING: st.text(),
        s.BINARY: st.binary(),
        s.DATE: st.dates(),
        s.TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
        s.TIMESTAMP_NTZ: st.datetimes(),
    }[data_type]


def typed(
    types: st.SearchStrategy[s.DataType] = stored_primitives,
) -> st.SearchStrategy[tuple[s.DataType, object]]:
    """A type and a value of it."""
    return types.flatmap(lambda data_type: st.tuples(st.just(data_type), values(data_type)))
