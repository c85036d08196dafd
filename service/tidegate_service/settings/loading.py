"""Reading the settings from flags, the environment and a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from tidegate_service.core.access.addresses import standard_otlp
from tidegate_service.settings.model import ENV_PREFIX, Settings

CONFIG_VARIABLE = "TIDEGATE_CONFIG"
# Given one at a time, so named in the singular.
_FLAGS = {"storage_options": "--storage-option"}
_SECRET = frozenset({"database_url", "otlp_endpoint", "storage_options"})
# The client's own, and the one that names the file.
_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TIDEGATE_URL", "TIDEGATE_TOKEN"})


class InvalidSettings(Exception):
    """The settings cannot be used; the message names each wrong one and where it came from."""


def load(flags: Mapping[str, Any] | None = None, *, config: Path | None = None) -> Settings:
    """The settings of this process. `flags` holds what the command line gave, by field name.

    Raises `InvalidSettings`, which names every wrong setting and its source, and never shows
    the value of a secret.
    """
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for source, found in (
        (f"the file {config}", {} if config is None else _file(config)),
        ("the standard OTEL_* variables", standard_otlp(os.environ)),
        ("the environment", EnvSettingsSource(Settings)()),
        ("the command line", dict(flags or {})),
    ):
        for name, value in found.items():
            values[name] = value
            origins[name] = source
    try:
        return Settings(**values)
    except ValidationError as error:
        raise InvalidSettings("\n".join(_explained(error, origins))) from None


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """`TIDEGATE_*` variables that nothing of Tidegate reads: most likely misspelt settings."""
    known = {env_name(field) for field in Settings.model_fields} | _OTHER_VARIABLES
    return sorted(
        name
        for name in environ
        if name.upper().startswith(ENV_PREFIX) and name.upper() not in known
    )


def env_name(field: str) -> str:
    return ENV_PREFIX + field.upper()


def flag_name(field: str) -> str:
    return _FLAGS.get(field) or "--" + field.replace("_", "-")


def _file(config: Path) -> dict[str, Any]:
    if not config.is_file():
        raise InvalidSettings(f"the file {config} does not exist")
    try:
        return TomlConfigSettingsSource(Settings, config)()
    except (ValueError, OSError) as error:
        raise InvalidSettings(f"the file {config} cannot be read: {error}") from None


def _explained(error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False, include_context=False):
        why = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:
            lines.append(why)
            continue
        field = str(problem["loc"][0])
        origin = origins.get(field, "its default")
        if problem["type"] == "extra_forbidden":
            known = ", ".join(Settings.model_fields)
            lines.append(f"{field} (from {origin}) is not a setting; there are: {known}")
            continue
        name = {"the environment": env_name, "the command line": flag_name}.get(origin, str)(field)
        found = "" if field in _SECRET else f"; found {problem['input']!r}"
        lines.append(f"{name} (from {origin}): {why}{found}")
    return lines
