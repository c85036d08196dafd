"""What can be set, and what a value may be (docs/settings.md)."""

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tidegate_service.core.access.addresses import is_loopback, is_postgres_url, masked
from tidegate_service.core.access.locations import LocationPolicy, canonical_url
from tidegate_service.core.errors import Refused
from tidegate_service.core.hooks.hook import installed_hooks
from tidegate_service.settings.lists import HostNames, Networks, Separated
from tidegate_service.settings.storage_options import parse_options

ENV_PREFIX = "TIDEGATE_"


class Settings(BaseSettings):
    """Made by `load`. A field's description is its documentation."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENV_PREFIX, env_ignore_empty=True
    )

    auth: Literal["none", "tokens"] = Field(
        "none",
        description="Who may call: everybody who reaches the service (`none`), or whoever has a "
        "token of `tidegate token create` (`tokens`).",
    )
    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. Without authentication only loopback is taken.",
    )
    allowed_hosts: HostNames = Field(
        (),
        description="Names by which the service may be called (the Host header, without a port); "
        "a list in the file, separated by commas elsewhere. By default the names of loopback "
        "without authentication, and any name with it.",
    )
    trusted_proxies: Networks = Field(
        (),
        description="Addresses, and networks as `10.0.0.0/8`, of proxies in front of the service, "
        "which say by `X-Forwarded-For` for whom they ask; a list in the file, separated by "
        "commas elsewhere. Of anybody else the header is not looked at (docs/operations.md).",
    )
    port: int = Field(8720, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(
        1,
        ge=1,
        le=64,
        description="Processes that serve the address. Other settings, bounds and pools among "
        "them, hold for each of them (docs/operations.md).",
    )
    data_dir: Path = Field(
        Path("tidegate-data"),
        description="Folder of the embedded Postgres and, by default, of the tables.",
    )
    data_dir_mode: str = Field(
        "0700",
        pattern=r"^0?[0-7]{3}$",
        description="Mode of the data folder and of the folders that are made in its warehouse, in "
        "octal; files have it without the right to search. Wider where others are to write there.",
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
        description="Where tables without a location of their own go: the URL of a folder that "
        "exists (`file:///`) or of a place in a bucket (`s3://`, `gs://`, `abfss://`).",
    )
    allowed_locations: Separated = Field(
        (),
        description="More places for tables, as URLs; a list in the file, by commas elsewhere.",
    )
    storage_options: Annotated[dict[str, SecretStr], NoDecode] = Field(
        {},
        description="Options of the object stores: endpoint, region, credentials "
        "(docs/storage.md). The flag takes one `key=value` and may be repeated; the file has a "
        "table, the variable pairs separated by commas or a JSON object. Values are never shown.",
    )
    max_connections: int = Field(
        4000,
        ge=1,
        description="Most connections at a time, fewer where the process may open fewer files; a "
        "further one gets a 429 and ends. One address has three quarters of them at most.",
    )
    max_requests: int = Field(
        1000, ge=1, description="Most requests under way at a time; a further one gets a 429."
    )
    max_requests_per_principal: int = Field(
        250,
        ge=1,
        description="Most requests of one principal under way at a time; a further one gets a "
        "429, and so does one of a principal that has more than three times what is left of "
        "`max_requests`. Without authentication there is no such bound.",
    )
    max_waiting_per_table: int = Field(
        500,
        ge=1,
        description="Most proposals that wait for one table at a time; a further one gets a 429. "
        "One principal has three quarters of them at most.",
    )
    keep_version_seconds: float = Field(
        2.0,
        ge=0,
        le=10,
        description="How long at most a table's other proposals wait for the writer of a commit by "
        "Unity Catalog's API that found its version taken; 0 for not at all.",
    )
    max_body_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, le=1024**3, description="Largest request body, in bytes."
    )
    max_stream_bytes: int = Field(
        1024**3,
        ge=1024,
        description="Largest NDJSON body, in bytes, and what all large bodies may hold together; "
        "those of one principal, three quarters of it at most.",
    )
    max_stream_actions: int = Field(
        1_000_000, ge=1, description="Most actions of a proposal as NDJSON."
    )
    max_log_file_bytes: int = Field(
        1024**3,
        ge=1024 * 1024,
        description="Largest commit file of a log that is read, in bytes; it may have as many "
        "actions as a proposal. A larger one quarantines its table, or keeps it from being "
        "registered.",
    )
    max_log_files: int = Field(
        1_000_000,
        ge=1000,
        description="Most files of a log that are listed, its commits included. A table with more "
        "is neither registered nor rebuilt.",
    )
    max_checkpoint_readers: int = Field(
        16,
        ge=1,
        le=1000,
        description="Most Parquet checkpoints that are read at a time, each in 1.5 GiB at most.",
    )
    deadline_seconds: float = Field(
        30.0,
        gt=0,
        le=600,
        description="Time after which a request that has no answer yet gets a 503, in seconds.",
    )
    long_deadline_seconds: float = Field(
        900.0,
        gt=0,
        le=86_400,
        description="The same for a call that reads a whole log (register, rebuild) or lands a "
        "body of more than 16 MiB, in seconds.",
    )
    max_read_age_seconds: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="A read of a plain table may be answered by a look at its log that began less "
        "than so many seconds before the request. 0: the look begins after the request. Each "
        "instance looks for itself; commits do not go by it (docs/scans.md).",
    )
    publish_interval_seconds: float = Field(
        1.0,
        gt=0,
        le=60,
        description="Longest wait between two looks for versions to publish, in seconds.",
    )
    max_unpublished_versions: int = Field(
        100_000,
        ge=1,
        description="Most versions of a catalog-managed table that wait for publishing; a commit "
        "beyond gets a 429.",
    )
    upkeep_share: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Part of the time of one process that the upkeep of logs may take: "
        "checkpoints, checksums, clean-up, and as much again for compacted files, and for symlink "
        "manifests (docs/upkeep.md). 0 switches it off.",
    )
    max_commits_after_checkpoint: int = Field(
        20_000,
        ge=10,
        description="Commits after a table's newest checkpoint from which on the next one is "
        "written without regard to `upkeep_share`.",
    )
    commits_to_compact: int = Field(
        100,
        ge=0,
        le=1000,
        description="Published commits after a table's newest checkpoint, or after its newest "
        "compacted file, from which on they are written as one, where a checkpoint would be "
        "longer (docs/upkeep.md); 2 or more. 0 switches it off.",
    )
    hooks: Separated = Field(
        (),
        description="Post-commit hooks that are run, by the names of installed entry points "
        "(docs/hooks.md); a list in the file, separated by commas elsewhere.",
    )
    table_hooks: Separated = Field(
        (),
        description="Post-commit hooks that tables may name in their property `tidegate.hooks`, "
        "as `hooks`. They are run for the tables that name them.",
    )
    otlp_endpoint: str | None = Field(
        None,
        description="Where spans are sent to, as OTLP over HTTP: "
        "`http://collector:4318/v1/traces`. Nothing is traced without it. The standard "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` set it too.",
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
    def _loopback(cls, host: str, found: ValidationInfo) -> str:
        if not is_loopback(host) and found.data.get("auth") != "tokens":
            raise ValueError(
                "expected a loopback address (127.0.0.1, ::1 or localhost): there is no "
                "authentication, so the service refuses to listen where others could reach it; "
                "make a token and set auth to 'tokens' to listen wider"
            )
        return host

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, data_dir: Path) -> Path:
        return data_dir.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _postgres(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not is_postgres_url(url.get_secret_value()):
            raise ValueError("expected postgresql://user:password@host:port/name")
        return url

    @field_validator("otlp_endpoint")
    @classmethod
    def _http(cls, url: str | None) -> str | None:
        parts = urlsplit(url or "http://none")
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            # Not echoed with credentials in it; those belong into OTEL_EXPORTER_OTLP_HEADERS.
            raise ValueError("expected http://host:port/path, without credentials")
        return url

    @field_validator("commits_to_compact")
    @classmethod
    def _several(cls, commits: int) -> int:
        if commits == 1:
            raise ValueError("expected 0, or 2 and more: one commit is a file already")
        return commits

    @field_validator("hooks", "table_hooks")
    @classmethod
    def _installed(cls, hooks: tuple[str, ...]) -> tuple[str, ...]:
        return installed_hooks(hooks)

    @field_validator("storage_options", mode="before")
    @classmethod
    def _options(cls, value: object) -> object:
        if isinstance(value, dict) and all(isinstance(v, SecretStr) for v in value.values()):
            return value
        return parse_options(value)

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

    def modes(self) -> dict[str, int]:
        """Which mode folders are made with, by the URL of the place that they are in."""
        return {canonical_url(self._default_warehouse()): self.folder_mode}

    @property
    def folder_mode(self) -> int:
        return int(self.data_dir_mode, 8)

    def _default_warehouse(self) -> str:
        return f"file://{self.data_dir / 'warehouse'}"

    def store_options(self) -> dict[str, str]:
        """The storage options with their values, for the stores alone."""
        return {key: value.get_secret_value() for key, value in self.storage_options.items()}

    def masked_database_url(self) -> str | None:
        """The database's URL as it may be shown: without its password and query."""
        return None if self.database_url is None else masked(self.database_url.get_secret_value())
