"""The instance's clock against the database's, which is the one that commits are dated by."""

from tidegate_service.core.context import Context
from tidegate_service.core.errors import ClockSkew
from tidegate_service.core.ports.index import CommitSection

MAX_CLOCK_SKEW_MS = 5_000


def check_clock(context: Context, section: CommitSection) -> None:
    """Raise `ClockSkew` where the two are further apart than `MAX_CLOCK_SKEW_MS`.

    Timestamps of versions never come from the instance's clock, but one of the two is wrong
    then, and nobody here can say which. Also raised where the section's lock was granted that
    long ago without this instance noticing, as after it was stopped: its lock is gone by then.
    """
    skew_ms = context.now_ms() - section.now_ms
    if abs(skew_ms) > MAX_CLOCK_SKEW_MS:
        raise ClockSkew(
            f"this instance's clock is {abs(skew_ms)} ms "
            f"{'ahead of' if skew_ms > 0 else 'behind'} the index database's; "
            f"it takes no commits while they differ by more than {MAX_CLOCK_SKEW_MS} ms"
        )
