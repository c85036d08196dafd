"""Storage options as they are given: a table, JSON, or `key=value` pairs. Values are secrets."""

import json
import re
from collections.abc import Iterable, Mapping

_KEY = re.compile(r"[a-z][a-z0-9_]{0,99}")
_EXPECTED = "expected key=value pairs, separated by commas, or a JSON object of strings"


def parse_options(value: object) -> dict[str, str]:
    """Keys in lower case, and their values as text.

    Takes a mapping, `key=value` strings, or one string: a JSON object, or pairs separated by
    commas. Raises `ValueError`, which never shows a value.
    """
    options: dict[str, str] = {}
    for key, found in _pairs(value):
        name = key.strip().lower() if isinstance(key, str) else ""
        if not _KEY.fullmatch(name):
            raise ValueError(f"{_EXPECTED}; an option's name is not letters, digits and '_'")
        if name in options:
            raise ValueError(f"the option {name} is given twice")
        if isinstance(found, bool):
            options[name] = str(found).lower()
        elif isinstance(found, str):
            options[name] = found
        else:
            raise ValueError(f"the value of the option {name} is not a string")
    return options


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(_EXPECTED) from None
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError(_EXPECTED)
    return [_split(pair) for pair in value]


def _split(pair: object) -> tuple[str, str]:
    if not isinstance(pair, str) or "=" not in pair:
        raise ValueError(_EXPECTED)
    key, _, value = pair.partition("=")
    return key, value
