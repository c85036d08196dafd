"""The options of a write, by Delta's names, parsed once."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from tidegate.errors import InvalidRequest
from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import meant

OptionValue = str | int | bool
T = TypeVar("T")

OPTIMIZE_WRITE = "optimizeWrite"
"""For writes whose rows Spark's plan can shuffle."""

_PARAMETERS = ("replace_where", "partition_by", "retries")
"""Of the methods of `Table`, for which options are mistaken."""
_DIGITS = re.compile("[0-9]{1,19}")
_LARGEST_LONG = 2**63 - 1

CODECS = ("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd")
"""Of Spark's codecs for Parquet those that need no jars of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How data files are written. Without a limit of records or a codec it is the session's.

    `data_change` False says of the files that their rows were in the table already, `optimize` has
    the rows sorted into few files before they are written.
    """

    data_change: bool = True
    optimize: bool = False
    max_records: int | None = None
    codec: str | None = None

    NAMES = ("dataChange", "maxRecordsPerFile", "compression")

    @classmethod
    def parse(cls, options: Mapping[str, OptionValue]) -> Self:
        """Names and words are matched in any case. Raises `InvalidRequest`."""
        return cls._of(_Given(options, (*cls.NAMES, OPTIMIZE_WRITE)))

    @classmethod
    def _of(cls, given: "_Given") -> Self:
        return cls(
            data_change=given.get("dataChange", _boolean) is not False,
            optimize=given.get(OPTIMIZE_WRITE, _boolean) is True,
            max_records=given.get("maxRecordsPerFile", _positive),
            codec=given.get("compression", _one_of(*CODECS)),
        )

    @property
    def of_writer(self) -> dict[str, str]:
        """The options of Spark's Parquet writer that say so."""
        found = {}
        if self.max_records is not None:
            found["maxRecordsPerFile"] = str(self.max_records)
        if self.codec is not None:
            found["compression"] = self.codec
        return found


AS_USUAL = FileOptions()
"""Files with new rows, as the session writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What else a write is to do. `txn` is an application's id and a version of its own, and
    `is_dynamic` says that only the partitions that rows are written to are overwritten."""

    files: FileOptions
    merge_schema: bool
    overwrite_schema: bool
    user_metadata: str | None
    txn: tuple[str, int] | None
    is_dynamic: bool

    NAMES = (
        "mergeSchema",
        "userMetadata",
        "txnAppId",
        "txnVersion",
        *FileOptions.NAMES,
    )
    NAMES_OF_OVERWRITE = ("overwriteSchema", "partitionOverwriteMode")
    NAMES_OF_STREAMS = ("mergeSchema", "userMetadata", "maxRecordsPerFile", "compression")

    @classmethod
    def parse(
        cls,
        options: Mapping[str, OptionValue],
        *,
        is_overwrite: bool,
        replace_where: str | None = None,
    ) -> Self:
        """Names and words are matched in any case. Raises `InvalidRequest` for an option that is
        none of this write's, for a value that it does not have, and for options that exclude each
        other."""
        names = (*cls.names(is_overwrite=is_overwrite), OPTIMIZE_WRITE)
        found = cls._of(_Given(options, names))
        found._check_together(replace_where)
        return found

    @classmethod
    def parse_for_stream(cls, options: Mapping[str, OptionValue], *, replaces_all: bool) -> Self:
        """As `parse`, for every batch of a stream. What names a batch is not for options, and
        `overwriteSchema` is for batches that replace all rows."""
        names = (*cls.names_for_stream(replaces_all=replaces_all), OPTIMIZE_WRITE)
        return cls._of(_Given(options, names))

    @classmethod
    def names(cls, *, is_overwrite: bool) -> tuple[str, ...]:
        """Of the options that such a write has."""
        return (*cls.NAMES, *cls.NAMES_OF_OVERWRITE) if is_overwrite else cls.NAMES

    @classmethod
    def names_for_stream(cls, *, replaces_all: bool) -> tuple[str, ...]:
        """Of the options that such a stream has."""
        of_all = ("overwriteSchema",) if replaces_all else ()
        return (*cls.NAMES_OF_STREAMS, *of_all)

    @classmethod
    def _of(cls, given: "_Given") -> Self:
        mode = given.get("partitionOverwriteMode", _one_of("static", "dynamic"))
        return cls(
            files=FileOptions._of(given),
            merge_schema=given.get("mergeSchema", _boolean) is True,
            overwrite_schema=given.get("overwriteSchema", _boolean) is True,
            user_metadata=given.get("userMetadata", _text),
            txn=_txn(given),
            is_dynamic=mode == "dynamic",
        )

    @property
    def changes_schema(self) -> bool:
        """Whether the table may get the DataFrame's columns."""
        return self.merge_schema or self.overwrite_schema

    def check_changes_data(self, *, instead: str) -> None:
        """Raise `InvalidRequest` for a rewrite, of which nobody can say at which version its rows
        were read: what was appended since would be removed as if it had been among them."""
        if not self.files.data_change:
            raise _refused(
                "dataChange false removes what was appended since the DataFrame was read, unless a "
                f"transaction says when that was; expected {instead}"
            )

    def check_one_says_what(self, replace_where: str | None) -> None:
        """Raise `InvalidRequest` where the table has partitions to overwrite dynamically, and a
        predicate says what is overwritten, too."""
        if self.is_dynamic and replace_where is not None:
            raise _refused(
                "replace_where and partitionOverwriteMode dynamic both say what is replaced; "
                "expected one of them",
                error_class="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )

    def _check_together(self, replace_where: str | None) -> None:
        if self.overwrite_schema and replace_where is not None:
            raise _refused(
                "overwriteSchema is for replacing all rows, not those of replace_where; "
                "mergeSchema adds columns",
                error_class="DELTA_METADATA_MISMATCH",
            )
        if self.overwrite_schema and self.is_dynamic:
            raise _refused(
                "overwriteSchema is for replacing all rows, not with partitionOverwriteMode "
                "dynamic",
                error_class="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        if self.changes_schema and not self.files.data_change:
            raise _refused(
                "dataChange false says that the table's rows stay the same, so that its schema "
                "cannot change; expected it without mergeSchema and overwriteSchema"
            )


def options_of(
    options: Mapping[str, OptionValue],
    *,
    user_metadata: str | None,
    txn: tuple[str, int] | None,
) -> dict[str, OptionValue]:
    """The options with what was given by a parameter of its own. Raises `InvalidRequest` for what
    was given in both ways."""
    named: dict[str, OptionValue] = {}
    if user_metadata is not None:
        named["userMetadata"] = user_metadata
    if txn is not None:
        named["txnAppId"], named["txnVersion"] = txn
    names = {name.lower() for name in named}
    if twice := sorted(name for name in options if name.lower() in names):
        raise _refused(f"the options {twice} were given as parameters, too; expected one way")
    return named | dict(options)


class _Given:
    """Options as they were given, by their names in lower case."""

    def __init__(self, options: Mapping[str, OptionValue], names: tuple[str, ...]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        known = {name.lower() for name in names}
        if unknown := sorted(name for name in options if name.lower() not in known):
            raise _refused(
                f"this write has no option {meant(unknown[0], (*names, *_PARAMETERS))}; it has "
                f"{sorted(names)}"
            )

    def get(self, name: str, parse: Callable[[str, OptionValue], T]) -> T | None:
        """The parsed value, None where the option was not given."""
        value = self._values.get(name.lower())
        return None if value is None else parse(name, value)


def parse_app_id(name: str, value: OptionValue) -> str:
    """An application's id. Raises `InvalidRequest` for an empty one, in which whoever forgot theirs
    would meet."""
    text = _text(name, value)
    if not text:
        raise _refused(f"expected an application's id as {name}, found an empty one")
    return text


def parse_txn(options: Mapping[str, OptionValue]) -> tuple[str, int] | None:
    """An application's id and a version of its own. Raises `InvalidRequest`."""
    return _txn(_Given(options, ("txnAppId", "txnVersion")))


def _txn(given: _Given) -> tuple[str, int] | None:
    app_id = given.get("txnAppId", parse_app_id)
    version = given.get("txnVersion", _app_version)
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        raise _refused(
            "txnAppId and txnVersion go together, as options and as the session's settings "
            "spark.databricks.delta.write.*; expected both of them or none",
            error_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        )
    return app_id, version


def _text(name: str, value: OptionValue) -> str:
    return str(value)


def _boolean(name: str, value: OptionValue) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise _illegal(f"expected true or false as option {name}, found {value!r}")
    return text == "true"


def _number(name: str, value: OptionValue) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise _illegal(f"expected a whole number as option {name}, found {value!r}") from None


def _app_version(name: str, value: OptionValue) -> int:
    # Below 0 every write would count as recorded already: -1 stands for "none yet".
    digits = str(value).lstrip("0") or str(value)[-1:]
    if not _DIGITS.fullmatch(digits) or int(digits) > _LARGEST_LONG:
        raise _illegal(
            f"expected a whole number from 0 to {_LARGEST_LONG} as option {name}, found {value!r}"
        )
    return int(digits)


def _positive(name: str, value: OptionValue) -> int:
    number = _number(name, value)
    if number < 1:
        raise _illegal(f"expected a number above 0 as option {name}, found {value!r}")
    return number


def _one_of(*words: str) -> Callable[[str, OptionValue], str]:
    def parse(name: str, value: OptionValue) -> str:
        word = str(value).lower()
        if word not in words:
            raise _illegal(f"expected one of {list(words)} as option {name}, found {value!r}")
        return word

    return parse


def _illegal(detail: str) -> InvalidRequest:
    return _refused(detail, error_class="DELTA_ILLEGAL_OPTION")


def _refused(detail: str, *, error_class: str | None = None) -> InvalidRequest:
    return InvalidRequest(detail, code=Code.INVALID_REQUEST, definite=True, error_class=error_class)
