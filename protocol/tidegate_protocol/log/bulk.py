"""Many log lines at once: what `codec.decode` does to one, without its cost for each.

A text of lines is decoded in one go, by the types of what is common, and encoded again. Where that
gives the same bytes, every line is one JSON object in its shortest form, with distinct keys and
nothing that the types don't know: as strict as `strict_json`, whose decoder it is. What comes back
as other bytes is looked at in a second way, and what that does not decide is the caller's to decode
line by line: this module takes fewer texts than `codec`, and none that `codec` refuses.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from tidegate_protocol.base import strict_json
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Action, Add, Long, PartitionValues, Remove
from tidegate_protocol.log.paths import MAX_PATH_BYTES
from tidegate_protocol.log.spooled import Lines, SpooledAdd, SpooledRemove, spooled
from tidegate_protocol.log.statistics import is_statistics

Keep = Callable[[bytes], Lines]
"""Takes lines, each ended by a newline, and gives the place that they are read from later."""

# Of these `paths.check` takes all. It takes more, at ten times the cost.
_PLAIN_PATH = r"[A-Za-z0-9=~-][A-Za-z0-9=_.~+,@-]*(?:/[A-Za-z0-9=_~-][A-Za-z0-9=_.~+,@-]*)*"
_PLAIN = re.compile(_PLAIN_PATH)
_ALL_PLAIN = re.compile(rf"(?:{_PLAIN_PATH}\n)*")

_NUL = b"\\u0000"
_KNOWN_PARTITIONS = 10_000
_MAX_CONTAINERS = 4 * strict_json.MAX_CONTAINERS
_PLACES = tuple(range(4096))


class _AddBody(Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    path: str
    partition_values: msgspec.Raw
    size: Long
    modification_time: Long
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: msgspec.Raw | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None


class _RemoveBody(Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    path: str
    data_change: bool
    deletion_timestamp: Long | None = None
    extended_file_metadata: bool | None = None
    partition_values: msgspec.Raw | None = None
    size: Long | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: msgspec.Raw | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None


class _Line(Struct, omit_defaults=True, gc=False):
    add: _AddBody | None = None
    remove: _RemoveBody | None = None


_LINES = msgspec.json.Decoder(_Line)
_VALUES = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
_PARTITION = msgspec.json.Decoder(PartitionValues)


def _strictly(line: bytes) -> list[Action]:
    return [codec.decode(line)]


class BulkDecoder:
    """Decodes the lines of one body, a text of them at a time. `keep` is called for every text
    that has file actions without bytes of their own."""

    def __init__(self, keep: Keep, decode: Callable[[bytes], Iterable[Action]] = _strictly) -> None:
        """`decode` reads a line that is in none of the common forms."""
        self._keep = keep
        self._decode = decode
        self._partitions: dict[bytes, PartitionValues] = {}

    def decode(self, text: bytes) -> list[Action] | None:
        """The actions of lines that each end with a newline; None for "look at every line"."""
        if _NUL in text or strict_json.containers(text) > _MAX_CONTAINERS:
            return None
        try:
            found = _LINES.decode_lines(text)
            # A value may go over several lines, and a line hold several values.
            if len(found) != text.count(b"\n"):
                return None
            if _ENCODER.encode_lines(found) != text and not _is_strict(text):
                return None
            return self._actions(text, found)
        except (
            msgspec.DecodeError,
            UnicodeError,
            RecursionError,
            codec.InvalidActionError,
            strict_json.InvalidJson,
        ):
            return None

    def keep(self, actions: Sequence[Action]) -> list[Action]:
        """The actions of `codec.decode`, the bytes of file actions given away."""
        source = self._keep(codec.encode_lines(actions))
        return [_lightened(action, source, at) for at, action in enumerate(actions)]

    def _actions(self, text: bytes, found: Sequence[_Line]) -> list[Action]:
        source = self._keep(text)
        all_plain = _all_plain(found)
        lines: list[bytes] = []
        actions: list[Action] = []
        time = 0
        for at, line in zip(_places(len(found)), found, strict=False):
            add = line.add
            if (
                add is not None
                and line.remove is None
                and add.deletion_vector is None
                and add.size > 0
                and add.modification_time >= 0
                and (all_plain or _is_plain(add.path))
                and (add.stats is None or is_statistics(add.stats))
            ):
                # Files of one commit are often as old, and a number is an object.
                time = time if add.modification_time == time else add.modification_time
                actions.append(
                    SpooledAdd(
                        path=add.path,
                        partition_values=self._partition(add.partition_values),
                        size=add.size,
                        modification_time=time,
                        data_change=add.data_change,
                        tags=add.tags,
                        base_row_id=add.base_row_id,
                        default_row_commit_version=add.default_row_commit_version,
                        clustering_provider=add.clustering_provider,
                        source=source,
                        at=at,
                    )
                )
                continue
            remove = line.remove
            if (
                remove is not None
                and add is None
                and remove.deletion_vector is None
                and (remove.size or 0) >= 0
                and (remove.deletion_timestamp or 0) >= 0
                and (all_plain or _is_plain(remove.path))
            ):
                values = remove.partition_values
                actions.append(
                    SpooledRemove(
                        path=remove.path,
                        data_change=remove.data_change,
                        deletion_timestamp=remove.deletion_timestamp,
                        extended_file_metadata=remove.extended_file_metadata,
                        partition_values=None if values is None else self._partition(values),
                        size=remove.size,
                        tags=remove.tags,
                        base_row_id=remove.base_row_id,
                        default_row_commit_version=remove.default_row_commit_version,
                        source=source,
                        at=at,
                    )
                )
                continue
            lines = lines or text.split(b"\n")
            actions += (_lightened(action, source, at) for action in self._decode(lines[at]))
        return actions

    def _partition(self, raw: msgspec.Raw) -> PartitionValues:
        """A commit's files share few partition values; each is decoded and held once."""
        text = bytes(raw)
        values = self._partitions.get(text)
        if values is None:
            strict_json.decode(text)
            if len(self._partitions) >= _KNOWN_PARTITIONS:
                self._partitions.clear()
            values = self._partitions[text] = _PARTITION.decode(text)
        return values


def _lightened(action: Action, source: Lines, at: int) -> Action:
    if not isinstance(action, Add | Remove):
        return action
    return spooled(action, source, at) or action


def _is_strict(text: bytes) -> bool:
    """Whether every line is one JSON object with one key, in its shortest form."""
    values = _VALUES.decode_lines(text)
    if _ENCODER.encode_lines(values) != text:
        return False
    if not all(isinstance(value, dict) and len(value) == 1 for value in values):
        return False
    return all(strict_json.containers(line) <= strict_json.MAX_DEPTH for line in text.split(b"\n"))


def _all_plain(found: Sequence[_Line]) -> bool:
    files = [line.add or line.remove for line in found]
    texts = [file.path for file in files if file is not None]
    together = "\n".join([*texts, ""])
    return (
        max(map(len, texts), default=0) <= MAX_PATH_BYTES
        # A path that holds a newline would pass for two.
        and together.count("\n") == len(texts)
        and _ALL_PLAIN.fullmatch(together) is not None
    )


def _is_plain(path: str) -> bool:
    return len(path) <= MAX_PATH_BYTES and _PLAIN.fullmatch(path) is not None


def _places(length: int) -> Iterable[int]:
    """0, 1, 2 and so on: the same objects for every text, as long as it is of a usual length."""
    return _PLACES if length <= len(_PLACES) else range(length)
