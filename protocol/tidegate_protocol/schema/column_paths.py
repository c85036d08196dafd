"""Names of columns and nested fields in text, as table properties and SQL write them."""

import re

from tidegate_protocol.base.text import excerpt

# All of a list by one expression: a property may be long, and each commit may have to read it.
_NAME = re.compile(r"\s*(?:(\w+)|`((?:[^`]|``)+)`(?!`))\s*([.,]?)")


class InvalidColumnPath(ValueError):
    """The text is no path, or no list of paths; the message says why."""


def parse(text: str) -> tuple[str, ...]:
    """The names in a dotted path: ``a.`b.c` `` -> ("a", "b.c"). Raises `InvalidColumnPath`."""
    paths = parse_list(text)
    if len(paths) != 1:
        raise InvalidColumnPath(f"expected the path of one column, found {excerpt(text)}")
    return paths[0]


def parse_list(text: str) -> tuple[tuple[str, ...], ...]:
    """The paths in a comma-separated list, as in `delta.dataSkippingStatsColumns`. A name with
    anything but letters, digits and underscores stands in backticks, a backtick in one doubled.

    Raises `InvalidColumnPath`.
    """
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    position = 0
    text = text.strip()
    while text:
        found = _NAME.match(text, position)
        if found is None:
            raise InvalidColumnPath(
                f"{excerpt(text)} is not a list of columns: expected a name at {position}, in "
                "backticks where it is not of letters, digits and underscores"
            )
        plain, quoted, separator = found.groups()
        path.append(plain or quoted.replace("``", "`"))
        if separator != ".":
            paths.append(tuple(path))
            path = []
        position = found.end()
        if not separator:
            break
    if position < len(text):
        raise InvalidColumnPath(
            f"{excerpt(text)} is not a list of columns: unexpected {text[position]!r}"
        )
    return tuple(paths)
