"""Columns whose values writers compute: identity, generated and default ones (PROTOCOL.md,
"Identity Columns", "Generated Columns", "Default Columns").

The values themselves are the writers' duty. What can be seen without them is checked: that the
schema says what they need, and that numbers which were given out are never given out again.
"""

from dataclasses import dataclass

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.known import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_EXPLICIT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from tidegate_protocol.schema.data_types import (
    LONG,
    VARIANT,
    Field,
    StructType,
    physical_name,
    walk,
)
from tidegate_protocol.schema.table_schema import InvalidSchema

_IDENTITY = frozenset({IDENTITY_START, IDENTITY_STEP, IDENTITY_HIGH_WATER_MARK, IDENTITY_EXPLICIT})
_LONGS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An identity column's values are `start + k * step`; `mark` is the last one given out."""

    start: int
    step: int
    mark: int | None
    explicit: bool


def check_columns(schema: StructType) -> None:
    """Raise `InvalidSchema` where a column says of its values what writers cannot follow."""
    top_level = set(map(id, schema.fields))
    for path, field, _ in walk(schema):
        name = excerpt(".".join(path))
        found = identity(field)
        generated = GENERATION_EXPRESSION in field.metadata
        if (found is not None or generated) and id(field) not in top_level:
            raise InvalidSchema(f"column {name}: a nested field cannot be computed")
        if found is not None and generated:
            raise InvalidSchema(f"column {name} cannot be generated and an identity column")
        if generated and field.type == VARIANT:
            raise InvalidSchema(f"column {name} is a variant, which cannot be generated")
        for key in (GENERATION_EXPRESSION, CURRENT_DEFAULT):
            text = field.metadata.get(key, "NULL")
            if not isinstance(text, str) or not text.strip():
                raise InvalidSchema(f"column {name}: {key} is not the text of an expression")
        default = field.metadata.get(CURRENT_DEFAULT, "NULL")
        if field.type == VARIANT and str(default).strip().upper() != "NULL":
            raise InvalidSchema(f"column {name} is a variant, whose default can only be NULL")


def identity(field: Field) -> Identity | None:
    """What makes the field an identity column; None where it is none. Raises `InvalidSchema`."""
    if not _IDENTITY & field.metadata.keys():
        return None
    start, step, mark = (
        field.metadata.get(key) for key in (IDENTITY_START, IDENTITY_STEP, IDENTITY_HIGH_WATER_MARK)
    )
    explicit = field.metadata.get(IDENTITY_EXPLICIT, False)
    if (
        not _is_long(start)
        or not _is_long(step)
        or step == 0
        or not (mark is None or _is_long(mark))
        or not isinstance(explicit, bool)
        or field.type != LONG
    ):
        raise InvalidSchema(
            f"column {excerpt(field.name)}: an identity column has the type long, {IDENTITY_START} "
            f"and {IDENTITY_STEP} (not 0), and {IDENTITY_HIGH_WATER_MARK} as longs"
        )
    assert isinstance(start, int)
    assert isinstance(step, int)
    return Identity(start=start, step=step, mark=mark, explicit=explicit)


def check_identity_change(before: StructType, after: StructType, *, sets_marks: bool) -> None:
    """Raise `InvalidSchema` where an identity column that stays would count otherwise, or give a
    number out again. `sets_marks`: the commit is one of those that set marks by what they find in
    the data, also to lower ones (Delta's SYNC IDENTITY)."""
    old = {physical_name(field): field for field in before.fields}
    for field in after.fields:
        known = old.get(physical_name(field))
        was = None if known is None else identity(known)
        now = identity(field)
        if was is None or now is None:
            continue
        name = excerpt(field.name)
        if (was.start, was.step) != (now.start, now.step):
            raise InvalidSchema(f"identity column {name} cannot change its start or step")
        if was.mark is None or sets_marks:
            continue
        sunk = now.mark is None or (was.mark - now.mark) * was.step > 0
        if sunk:
            raise InvalidSchema(
                f"identity column {name}: {IDENTITY_HIGH_WATER_MARK} goes back from {was.mark} to "
                f"{now.mark}"
            )


def only_identity_marks_moved(before: StructType, after: StructType) -> bool:
    """Whether the schemas differ in nothing but the numbers that identity columns gave out."""
    return _unmarked(before) == _unmarked(after)


def _unmarked(schema: StructType) -> list[tuple[object, ...]]:
    return [
        (
            field.name,
            field.type,
            field.nullable,
            {k: v for k, v in field.metadata.items() if k != IDENTITY_HIGH_WATER_MARK},
        )
        for field in schema.fields
    ]


def _is_long(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONGS
