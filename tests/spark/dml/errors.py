"""Whether an error is the one that a vector expects."""

from collections.abc import Mapping
from typing import Any

SAID_BY_SERVICE: Mapping[str, str] = {
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "an identity column has the type long",
    "DELTA_INVALID_GENERATED_COLUMN_REFERENCES": "there is no column",
}
"""Delta's class -> what the service says in its place, which has codes of its own."""


def check_error(error: Exception, expect: Mapping[str, Any]) -> None:
    """Its text has Delta's class or words, in any case. Of `a / b` one is enough."""
    text = str(error).lower()
    wanted = expect["error"]
    own = SAID_BY_SERVICE.get(wanted)
    if own is not None:
        assert own.lower() in text, f"expected {own!r} ({wanted}), found: {error}"
        return
    assert wanted.lower() in text, f"expected {wanted!r}, found: {error}"
    for words in expect.get("error_words", ()):
        found = [each for each in words.split(" / ") if each.lower() in text]
        assert found, f"expected {words!r}, found: {error}"
