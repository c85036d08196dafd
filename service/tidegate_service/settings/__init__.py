"""The service's settings: one frozen object, from flags, the environment and a file.

A flag wins over a `TIDEGATE_*` variable, which wins over the file (TOML), which wins over the
default. Everything is checked here, once, at the start. What a setting does is no matter of this
package.
"""

from tidegate_service.settings.loading import (
    CONFIG_VARIABLE,
    InvalidSettings,
    env_name,
    flag_name,
    load,
    unknown_variables,
)
from tidegate_service.settings.model import ENV_PREFIX, Settings

__all__ = [
    "CONFIG_VARIABLE",
    "ENV_PREFIX",
    "InvalidSettings",
    "Settings",
    "env_name",
    "flag_name",
    "load",
    "unknown_variables",
]
