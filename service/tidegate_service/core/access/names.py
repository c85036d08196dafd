"""Table names: `catalog.schema.table`."""

import re

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import Refused

MAX_NAME_LENGTH = 255
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]*\Z")


def is_part(text: str) -> bool:
    """Whether the text can be the name of a catalog, a schema or a table."""
    return len(text) <= MAX_NAME_LENGTH and _PART.match(text) is not None


def check_name(name: str) -> None:
    """Raise `Refused` unless the name has three parts of letters, digits, `_` and `-`, each
    starting with a letter, digit or `_`, of at most 255 characters in all."""
    parts = name.split(".")
    if len(name) <= MAX_NAME_LENGTH and len(parts) == 3 and all(_PART.match(p) for p in parts):
        return
    raise Refused(
        "expected a table name of the form catalog.schema.table, each part of ASCII letters, "
        f"digits, '_' and '-', at most {MAX_NAME_LENGTH} characters in all; "
        f"found {excerpt(name)}",
        code=Code.INVALID_NAME,
    )
