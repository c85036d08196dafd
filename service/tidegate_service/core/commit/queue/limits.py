"""How much may wait and run in the queue."""

from dataclasses import dataclass

from tidegate_service.core.sharing.shares import most_of_one


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """At most `shared` shared groups and `own` groups of their own run at once. At most `waiting`
    proposals wait for a table, each for `wait_s` at most. One caller has a share of these places
    (`core.sharing.shares`). A table lingers for `linger_s` at most for the writers that were just
    answered, and no longer than their group took. A busy caller rests after a shared group, for as
    long as it took and for `rest_s` at most, and has fewer groups of its own while passes of the
    event loop take `long_pass_s` (`busy_callers`). The next version is kept for `keep_s` at most
    for the writer of a staged commit that came too late, which is told so after `line_s` at the
    latest (`kept_versions`)."""

    shared: int = 2
    own: int = 12
    waiting: int = 500
    wait_s: float = 10.0
    linger_s: float = 0.02
    rest_s: float = 0.25
    long_pass_s: float = 0.002
    keep_s: float = 2.0
    line_s: float = 5.0

    @property
    def shared_of_a_caller(self) -> int:
        """How many shared groups that run may have proposals of one caller: another one's finds a
        group that may begin."""
        return most_of_one(self.shared)

    @property
    def own_of_a_store(self) -> int:
        """How many groups of their own may be for plain tables of one store."""
        return most_of_one(self.own)

    @property
    def own_of_a_caller(self) -> int:
        """How many groups of their own one caller may have: all of these may be for one store."""
        return most_of_one(self.own_of_a_store)
