"""Table names: `catalog.schema.table`."""

import re

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import Refused

MAX_NAME_LENGTH = 255
FULL_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_\-]*(\.[A-Za-z0-9_][A-Za-z0-9_\-]*){2}$"
"""What `check_name` lets through, but for its length."""
_FULL = re.compile(FULL_NAME[1:-1])
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]*\Z")


def is_part(text: str) -> bool:
    """Whether the text can be the name of a catalog, a schema or a table."""
    return len(text) <= MAX_NAME_LENGTH and _PART.match(text) is not None


def check_name(name: str) -> None:
    """Raise `Refused` unless the name has three parts of letters, digits, `_` and `-`, each
    starting with a letter, digit or `_`, of at most 255 characters in all."""
    # The length first: a body may have a name of megabytes, and whoever sent it need not be known
    # to have any right on it yet.
    if len(name) <= MAX_NAME_LENGTH and _FULL.fullmatch(name):
        return
    raise Refused(
        "expected a table name of the form catalog.schema.table, each part of ASCII letters, "
        f"digits, '_' and '-', at most {MAX_NAME_LENGTH} characters in all; "
        f"found {excerpt(name)}",
        code=Code.INVALID_NAME,
    )
