"""How far a stream has read a table: what Spark keeps in the stream's checkpoint."""

from dataclasses import asdict, dataclass, replace
from typing import Self

from tidegate.spark.errors import StreamStopped

_FORMAT = 1
OffsetJson = dict[str, str | int | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """Everything before the version `version` was read, and of it the files up to number `index`;
    -1 for none.

    With `is_snapshot` these are the files of the table as of the version, with which a stream
    begins, else those that the version's commit brings. `table_id` is the table's.
    """

    table_id: str
    version: int
    index: int = -1
    is_snapshot: bool = False

    @classmethod
    def parse(cls, value: OffsetJson, *, table_id: str) -> Self:
        """Raises `StreamStopped` for the offset of another table, and of a newer client."""
        if value.get("format") != _FORMAT:
            raise StreamStopped(
                "The stored source offset format is invalid: "
                f"expected format {_FORMAT}, found {value}",
                error_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
            )
        fields = {name: value[name] for name in ("table_id", "version", "index", "is_snapshot")}
        found = cls(**fields)  # type: ignore[arg-type]
        if found.table_id != table_id:
            raise StreamStopped(
                "The streaming query was reading "
                f"from an unexpected table (id = '{table_id}'). It used to read from another one "
                f"(id = '{found.table_id}') according to checkpoint.",
                error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            )
        return found

    def to_json(self) -> OffsetJson:
        """The inverse of `parse`."""
        return {"format": _FORMAT, **asdict(self)}

    def behind(self, index: int, *, of: int) -> "Offset":
        """Behind one of so many files of the version."""
        return replace(self, index=index) if index + 1 < of else self.next_version()

    def next_version(self) -> "Offset":
        return replace(self, version=self.version + 1, index=-1, is_snapshot=False)
