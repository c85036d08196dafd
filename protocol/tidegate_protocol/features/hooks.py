"""The table property that names post-commit hooks. What names there are, the service says."""

import re
from collections.abc import Mapping

HOOKS = "tidegate.hooks"
MOST = 100
"""Hooks of a table."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def parse_names(text: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas, each once. Raises `ValueError`."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(names) > MOST or not all(map(_NAME.fullmatch, names)):
        raise ValueError(f"expected the names of at most {MOST} hooks, separated by commas")
    return names


def named_hooks(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """The hooks that a table names; none where another writer left something else there."""
    try:
        return parse_names(configuration.get(HOOKS, ""))
    except ValueError:
        return ()
