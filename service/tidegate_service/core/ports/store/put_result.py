"""What became of a file that was to be written under a name of its own."""

from enum import Enum


class PutResult(Enum):
    """CREATED: the bytes are there by this call. EXISTS: the store says that the name was taken
    before; only reading tells by what."""

    CREATED = "created"
    EXISTS = "exists"
