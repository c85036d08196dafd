"""Whether an error is the one that a vector expects."""

import re
from collections.abc import Mapping
from typing import Any

SAID_BY_SERVICE: Mapping[str, str] = {
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "an identity column has the type long",
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT": "is shorter than the",
    "randomPrefixLength needs to be greater than 0": "expected an integer of at least 1",
}
"""Delta's class, or its words -> what the service says in its place, which has codes of its own."""

_VERSION = re.compile(r"version \[([0-9]+)\]")


def check_error(error: Exception, expect: Mapping[str, Any], *, first: int) -> None:
    """Its text has Delta's class or words, in any case. Of `a / b` one is enough. `first` is our
    version of the vector's version 0."""
    text = str(error).lower()
    wanted = expect["error"]
    own = SAID_BY_SERVICE.get(wanted)
    if own is not None:
        assert own.lower() in text, f"expected {own!r} ({wanted}), found: {error}"
        return
    assert wanted.lower() in text, f"expected {wanted!r}, found: {error}"
    for words in expect.get("error_words", ()):
        ours = _VERSION.sub(lambda found: f"version [{int(found[1]) + first}]", words)
        found = [each for each in ours.split(" / ") if each.lower() in text]
        assert found, f"expected {words!r}, found: {error}"
