"""Blocking work in steps, done by hand."""

from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import TypeVar

from tidegate_protocol.log.content import LogFile
from tidegate_service.core.log.files.log_file import FileMemory, read_file
from tidegate_service.storage.local.files import LocalFiles

R = TypeVar("R")


def done(work: Generator[object, None, R]) -> R:
    """What the work returns."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def content_of(files: LocalFiles, path: str | PurePosixPath) -> bytes | LogFile | None:
    """A commit file as the service reads it."""

    def read(file, size):
        return read_file(file, size, max_bytes=2**30, max_actions=10**6, memory=FileMemory())

    found = done(files.read(str(path), read))
    return None if found is None else found.content


def inodes_below(root: Path) -> set[int]:
    """The numbers of a folder and of all that is in it, by which its files are told from others."""
    return {path.stat().st_ino for path in (root, *root.rglob("*"))}
