"""The service's settings: one frozen object, from flags, the environment and a file.

A flag wins over a `TIDEGATE_*` variable, which wins over the file (TOML), which wins over the
default. Everything is checked here, once, at the start (docs/settings.md).
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from tidegate_service.core.errors import Refused
from tidegate_service.core.locations import LocationPolicy, canonical_url

ENV_PREFIX = "TIDEGATE_"
CONFIG_VARIABLE = "TIDEGATE_CONFIG"
# The client's own, and the one that names the file.
_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TIDEGATE_URL", "TIDEGATE_TOKEN"})


class InvalidSettings(Exception):
    """The settings cannot be used; the message names each wrong one and where it came from."""


class Settings(BaseSettings):
    """Made by `load`. A field's description is its documentation."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENV_PREFIX, env_ignore_empty=True
    )

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. Only loopback is taken: there is no authentication.",
    )
    port: int = Field(8720, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    data_dir: Path = Field(
        Path("tidegate-data"),
        description="Folder of the embedded Postgres and, by default, of the tables.",
    )
    database_url: SecretStr | None = Field(
        None,
        description="The index: `postgresql://user:password@host:port/name`. Without it an "
        "embedded Postgres is started under the data folder.",
    )
    database_pool_size: int = Field(
        16,
        ge=2,
        le=1000,
        description="Connections to Postgres that are kept; under load as many again are made.",
    )
    migrate: bool = Field(
        False,
        description="Bring the schema of the database at `database_url` up to date before "
        "serving. The embedded one always is.",
    )
    warehouse: str | None = Field(
        None,
        description="Where tables without a location of their own go: the `file:///` URL of a "
        "folder that exists. By default `warehouse` under the data folder, which is made.",
    )
    allowed_locations: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Further `file:///` URLs under which a caller may place tables; "
        "a list in the file, separated by commas elsewhere.",
    )
    max_requests: int = Field(
        1000, ge=1, description="Most requests under way at a time; a further one gets a 429."
    )
    max_body_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, le=1024**3, description="Largest request body, in bytes."
    )
    deadline_seconds: float = Field(
        30.0,
        gt=0,
        le=600,
        description="Time after which a request that has no answer yet gets a 503, in seconds.",
    )
    publish_interval_seconds: float = Field(
        1.0,
        gt=0,
        le=60,
        description="Longest wait between two looks for versions to publish, in seconds.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least level of the log, which goes to standard error as JSON."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """`load` has merged the sources, so that it knows where each value came from."""
        return (init_settings,)

    @field_validator("host")
    @classmethod
    def _loopback(cls, host: str) -> str:
        try:
            loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise ValueError(
                "expected a loopback address (127.0.0.1, ::1 or localhost): this version has no "
                "authentication, so it refuses to listen where others could reach it"
            )
        return host

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, data_dir: Path) -> Path:
        return data_dir.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _postgres(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            try:
                parts = urlsplit(url.get_secret_value())
                usable = parts.scheme in ("postgresql", "postgres") and parts.path.strip("/") != ""
                _ = parts.port
            except ValueError:
                usable = False
            if not usable:
                raise ValueError("expected postgresql://user:password@host:port/name")
        return url

    @field_validator("allowed_locations", mode="before")
    @classmethod
    def _separated(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("warehouse", "allowed_locations")
    @classmethod
    def _canonical(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        try:
            if isinstance(value, tuple):
                return tuple(canonical_url(location) for location in value)
            return None if value is None else canonical_url(value)
        except Refused as refused:
            raise ValueError(refused.detail) from None

    @model_validator(mode="after")
    def _placeable(self) -> Self:
        if self.warehouse is None:
            try:
                canonical_url(self._default_warehouse())
            except Refused as refused:
                raise ValueError(
                    f"data_dir {str(self.data_dir)!r} cannot hold the warehouse: {refused.detail}"
                ) from None
        return self

    def locations(self) -> LocationPolicy:
        """Where tables may live."""
        warehouse = self.warehouse or self._default_warehouse()
        return LocationPolicy(warehouse=warehouse, prefixes=self.allowed_locations)

    def _default_warehouse(self) -> str:
        return f"file://{self.data_dir / 'warehouse'}"

    def masked_database_url(self) -> str | None:
        """The database's URL as it may be shown: without its password and query."""
        if self.database_url is None:
            return None
        parts = urlsplit(self.database_url.get_secret_value())
        user = f"{parts.username}:***@" if parts.password else ""
        user = user or (f"{parts.username}@" if parts.username else "")
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{user}{host}{parts.path}"


def load(flags: Mapping[str, Any] | None = None, *, config: Path | None = None) -> Settings:
    """The settings of this process. `flags` holds what the command line gave, by field name.

    Raises `InvalidSettings`, which names every wrong setting and its source, and never shows
    the value of a secret.
    """
    origins: dict[str, str] = {}
    values: dict[str, Any] = {}
    for source, found in (
        (f"the file {config}", {} if config is None else _file(config)),
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
    return "--" + field.replace("_", "-")


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
        found = "" if field == "database_url" else f"; found {problem['input']!r}"
        lines.append(f"{name} (from {origin}): {why}{found}")
    return lines
