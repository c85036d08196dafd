"""The instance's clock compared with the database's, which dates commits."""

from tidegate_service.core.context import Context
from tidegate_service.core.errors import ClockSkew
from tidegate_service.core.ports.index import CommitSection

MAX_CLOCK_SKEW_MS = 5_000


def check_clock(context: Context, section: CommitSection) -> None:
    """Raise `ClockSkew` where the two clocks are further apart than `MAX_CLOCK_SKEW_MS`.

    Timestamps of versions never come from the instance's clock. But where the clocks differ, one is
    wrong, and the instance cannot tell which. Also raised where the section's lock was granted that
    long ago, as after the instance was stopped: the lock may be gone.
    """
    skew_ms = context.now_ms() - section.now_ms
    if abs(skew_ms) > MAX_CLOCK_SKEW_MS:
        raise ClockSkew(
            f"this instance's clock is {abs(skew_ms)} ms "
            f"{'ahead of' if skew_ms > 0 else 'behind'} the index database's; "
            f"it takes no commits while they differ by more than {MAX_CLOCK_SKEW_MS} ms"
        )
