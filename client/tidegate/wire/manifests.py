"""Symlink manifests that are asked for."""

from msgspec import Struct

from tidegate.answers import decoded
from tidegate.wire.exchange import Request, Response, segment


class Manifests(Struct, frozen=True, kw_only=True):
    """What was written of a table at `version`: so many manifests, which name so many files. Those
    of partitions without files are `removed`."""

    table: str
    version: int
    manifests: int
    files: int
    removed: int


def manifests_request(table_id: str) -> Request:
    """Ask for a table's manifests."""
    return Request(method="POST", path=f"/tables/{segment(table_id)}/manifest")


def manifests_of(response: Response) -> Manifests:
    """Raises `UnexpectedAnswer`."""
    return decoded(response, Manifests)
