"""A commit that its writer has written whole, into a file beside the log, before it is proposed.

Clients of Unity Catalog's API commit in this way: they choose the version and write the bytes, and
the catalog says whether these become the version (PROTOCOL.md, "Staged commit").
"""

import hashlib
from dataclasses import dataclass

from tidegate_protocol.log.actions import Action, CommitInfo
from tidegate_protocol.log.content import Content


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCommit:
    """What lands as `version` if that is the next one; its bytes are `content`, unchanged.

    `name` is the file's, without its folder. `actions` are all of the file, in its order, and
    `commit_info` the first of them. `timestamp` is the in-commit timestamp, in ms.
    """

    version: int
    name: str
    content: Content
    actions: tuple[Action, ...]
    commit_info: CommitInfo
    timestamp: int

    def digest(self) -> str:
        return digest_of(self.name)


def digest_of(name: str) -> str:
    """SHA-256 (hex) of what tells one staged file from any other, its name: a client that repeats
    a commit names the same file."""
    return hashlib.sha256(f"staged commit {name}".encode()).hexdigest()
