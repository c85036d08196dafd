"""What a conversion comes to that has no value."""

from enum import Enum


class Failed(Enum):
    """Spark refuses the conversion: an error in ANSI mode, null without it and from TRY_CAST."""

    FAILED = "failed"


FAILED = Failed.FAILED
