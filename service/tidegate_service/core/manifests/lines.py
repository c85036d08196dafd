"""What stands in a table's manifests, and what keeps a table from having some.

Each is `_symlink_format_manifest/<partition>/manifest` with a URL a line, as Delta's
GenerateSymlinkManifest writes them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Add, Metadata
from tidegate_protocol.log.codec import decode as decode_action
from tidegate_protocol.log.paths import decode as decode_path
from tidegate_protocol.schema.partition_values import partition_path
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.files.scanned import StoredFiles

END_OF_FOLDER = "\0"
"""Between a partition's folder and a file in a sorted line. No folder's name has it, so that lines
of one folder follow each other."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_VALUES = msgspec.json.Decoder(dict[str, str | None])


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestLines:
    """Of the table at a location, whose partitions are by these columns."""

    location: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, location: str, metadata: Metadata) -> "ManifestLines":
        """Raises `Refused` for a table that such readers would read wrongly."""
        if TableProperties.parse(metadata.configuration).column_mapping:
            raise _unreadable("its columns are mapped")
        return cls(location=location, columns=metadata.partition_columns)

    def folder(self, values: Mapping[str, str | None]) -> str:
        """Of the partition with these values; '' in a table without partitions."""
        missing = [column for column in self.columns if column not in values]
        if missing:
            raise _unreadable(f"a file has no value of the partition column {missing[0]!r}")
        return partition_path(values, self.columns)

    def folders(self, partitions: Sequence[str]) -> list[str]:
        """Of partitions, whose values are given in JSON."""
        return [self.folder(_VALUES.decode(values)) for values in partitions]

    def of_files(self, files: StoredFiles) -> Iterator[str]:
        """A folder, `END_OF_FOLDER` and a URL for each file."""
        for raw in files.actions:
            add = decode_action(raw)
            assert isinstance(add, Add), "the index keeps files as adds"
            yield f"{self.folder(add.partition_values)}{END_OF_FOLDER}{self._url(add)}"

    def _url(self, file: Add) -> str:
        if file.deletion_vector is not None:
            raise _unreadable(
                f"the file {excerpt(file.path)} has a deletion vector, so rows that are deleted "
                "would be read",
                hint="Have the file written anew without one, as REORG TABLE ... APPLY (PURGE) "
                "does, or have the table read as a Delta table.",
            )
        path = decode_path(file.path)
        if "\n" in path or "\r" in path:
            raise _unreadable(f"the path {excerpt(path)} is more than one line")
        if _URL.match(file.path):
            return path
        if path.startswith("/"):
            scheme, _, rest = self.location.partition("://")
            return f"{scheme}://{rest.partition('/')[0]}{path}"
        return f"{self.location}/{path}"


def _unreadable(why: str, *, hint: str = "Have it read as a Delta table.") -> Refused:
    return Refused(
        f"there are no manifests of this table: {why}", code=Code.UNSUPPORTED_FEATURE, hint=hint
    )
