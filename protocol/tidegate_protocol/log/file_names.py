"""File names in `_delta_log` (PROTOCOL.md, "File Types").

The grammar is that of the protocol, not of the readers that accept more: versions have exactly
20 digits, parts exactly 10. Whatever else lies in the folder is `Unknown`, never an error.
"""

import re
from dataclasses import dataclass
from typing import Literal

MAX_VERSION = 2**63 - 1

LAST_CHECKPOINT = "_last_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFile:
    """`<version>.json`"""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """`<version>.checkpoint.parquet`"""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiPartCheckpoint:
    """`<version>.checkpoint.<part>.<parts>.parquet`, parts counted from 1."""

    version: int
    part: int
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Checkpoint:
    """`<version>.checkpoint.<uuid>.<format>`"""

    version: int
    uuid: str
    format: Literal["json", "parquet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedFile:
    """`<start>.<end>.compacted.json`, both ends included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumFile:
    """`<version>.crc`"""

    version: int


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """`_last_checkpoint`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Any other name: staged commits and sidecars have folders of their own."""

    name: str


LogFile = (
    CommitFile
    | CheckpointFile
    | MultiPartCheckpoint
    | V2Checkpoint
    | CompactedFile
    | ChecksumFile
    | LastCheckpoint
    | Unknown
)

_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_NAME = re.compile(
    r"(?P<version>[0-9]{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<checksum>crc)"
    r"|(?P<end>[0-9]{20})\.compacted\.json"
    r"|checkpoint\.(?:(?P<classic>parquet)"
    r"|(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"
    rf"|(?P<uuid>{_UUID})\.(?P<format>json|parquet)))"
)


_STAGED = re.compile(rf"(?P<version>[0-9]{{20}})\.{_UUID}\.json")


def staged_version(name: str) -> int | None:
    """The version of a staged commit by the name of its file in `_staged_commits`,
    `<version>.<uuid>.json`; None for any other name."""
    match = _STAGED.fullmatch(name)
    if match is None or int(match["version"]) > MAX_VERSION:
        return None
    return int(match["version"])


def commit_name(version: int) -> str:
    """The name of a version's commit file. Raises `ValueError` for what is no version."""
    if not 0 <= version <= MAX_VERSION:
        raise ValueError(f"{version} is not a version; expected 0 to {MAX_VERSION}")
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a version's classic checkpoint that is one file."""
    return f"{version:020d}.checkpoint.parquet"


def part_name(version: int, part: int, parts: int) -> str:
    """The name of one of a checkpoint's parts, counted from 1."""
    return f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def v2_checkpoint_name(version: int, uuid: str, form: Literal["json", "parquet"]) -> str:
    """The name of a V2 checkpoint's main file."""
    return f"{version:020d}.checkpoint.{uuid}.{form}"


def checksum_name(version: int) -> str:
    """The name of a version's checksum file. Raises `ValueError` for what is no version."""
    return commit_name(version).removesuffix("json") + "crc"


def compacted_name(start: int, end: int) -> str:
    """The name of the log compaction file of these versions, both included. Raises `ValueError`
    for what is no range of at least two versions."""
    if not 0 <= start < end <= MAX_VERSION:
        raise ValueError(f"{start} to {end} is no range of several versions")
    return f"{start:020d}.{end:020d}.compacted.json"


def parse(name: str) -> LogFile:
    """What a file directly inside `_delta_log` is, by its name without the folder."""
    if name == LAST_CHECKPOINT:
        return LastCheckpoint()
    match = _NAME.fullmatch(name)
    if match is None or (version := int(match["version"])) > MAX_VERSION:
        return Unknown(name=name)
    if match["commit"]:
        return CommitFile(version=version)
    if match["checksum"]:
        return ChecksumFile(version=version)
    if match["classic"]:
        return CheckpointFile(version=version)
    if match["uuid"]:
        is_json = match["format"] == "json"
        return V2Checkpoint(
            version=version, uuid=match["uuid"], format="json" if is_json else "parquet"
        )
    if match["end"]:
        end = int(match["end"])
        if version < end <= MAX_VERSION:
            return CompactedFile(start=version, end=end)
        return Unknown(name=name)
    part, parts = int(match["part"]), int(match["parts"])
    if 1 <= part <= parts:
        return MultiPartCheckpoint(version=version, part=part, parts=parts)
    return Unknown(name=name)
