"""What looks at a table's head say of its log's lag."""

from benchmarks.upkeep.lag import Lag


def lag_of(*looks: tuple[float, int, int]) -> Lag:
    lag = Lag()
    for at_s, latest, published in looks:
        lag.saw(latest, published, at_s=at_s)
    return lag


def test_a_log_that_is_its_tables_has_no_lag():
    lag = lag_of((0.0, 5, 5), (1.0, 9, 9))
    assert (lag.seconds, lag.versions, lag.looks) == (0.0, 0, 2)


def test_a_version_lags_from_when_it_was_seen_until_it_is_published():
    lag = lag_of((0.0, 5, 4), (1.0, 9, 4), (3.0, 9, 4), (4.0, 9, 5), (5.0, 9, 9))
    assert (lag.seconds, lag.versions) == (3.0, 5)


def test_the_oldest_one_that_waits_counts():
    lag = lag_of((0.0, 5, 4), (1.0, 9, 5), (2.0, 12, 8), (3.5, 15, 8), (4.0, 15, 12))
    assert lag.seconds == 2.5


def test_versions_that_were_seen_together_lag_together():
    assert lag_of((0.0, 100, 0), (1.0, 100, 99), (2.0, 200, 100), (2.5, 200, 199)).seconds == 1.0
