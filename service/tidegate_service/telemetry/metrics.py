"""The metrics that are counted on the way, in a Prometheus registry of one instance.

Every label's values are a closed set: routes are templates, codes and phases enumerations.
docs/operations.md lists them all; a test compares the two.
"""

from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from tidegate_protocol.base.problems import Code
from tidegate_service.core.observe.telemetry import Outcome, Phase, UpkeepKind, UpkeepOutcome

# A series more for each, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]

_REQUEST_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PHASE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"
"""The route of a request that no route took; OTHER_METHOD likewise."""
OTHER_METHOD = "other"


class Metrics:
    """Counters and histograms; `registry` is what is exposed."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        build = Info("tidegate_build", "The release that runs.", registry=registry)
        build.info({"version": version("tidegate")})
        self._requests = Histogram(
            "tidegate_request_duration_seconds",
            "From a request's head to the end of its answer.",
            ("method", "route", "status"),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._known_requests: dict[tuple[str, str | None, int], Histogram] = {}
        phases = Histogram(
            "tidegate_commit_phase_seconds",
            "How long the parts of a proposal's way take.",
            ("phase",),
            buckets=_PHASE_SECONDS,
            registry=registry,
        )
        self._phases = {phase: phases.labels(phase.value) for phase in Phase}
        proposals = Counter(
            "tidegate_proposals",
            "Proposals that ended, by kind of table and how.",
            ("kind", "outcome"),
            registry=registry,
        )
        self._proposals = {
            (managed, outcome): proposals.labels(kind_of(managed), outcome.value)
            for managed in (False, True)
            for outcome in Outcome
        }
        problems = Counter(
            "tidegate_proposal_problems",
            "Proposals that ended in a problem, by how and its code.",
            ("outcome", "code"),
            registry=registry,
        )
        self._problems = problems
        self._foreign = Counter(
            "tidegate_foreign_commits",
            "Versions written past the service that were read into the index.",
            registry=registry,
        )
        self._quarantines = Counter(
            "tidegate_quarantines", "Tables that were closed to commits.", registry=registry
        )
        self._published = Counter(
            "tidegate_published_versions",
            "Versions of catalog-managed tables that this instance put into their logs.",
            registry=registry,
        )
        runs = Counter(
            "tidegate_upkeep_runs",
            "Runs of upkeep by this instance, by kind and how they ended.",
            ("kind", "outcome"),
            registry=registry,
        )
        self._upkeep_runs = {
            (kind, outcome): runs.labels(kind.value, outcome.value)
            for kind in UpkeepKind
            for outcome in UpkeepOutcome
        }
        seconds = Counter(
            "tidegate_upkeep_seconds",
            "How long this instance was at work on upkeep.",
            ("kind",),
            registry=registry,
        )
        self._upkeep_seconds = {kind: seconds.labels(kind.value) for kind in UpkeepKind}
        self._cleaned_up = Counter(
            "tidegate_cleaned_up_files",
            "Expired files that this instance deleted from logs.",
            registry=registry,
        )

    def answered(self, *, method: str, route: str | None, status: int, seconds: float) -> None:
        # Few, since their labels' values are: `labels` itself takes longer than all else here.
        kind = (method, route, status // 100)
        histogram = self._known_requests.get(kind)
        if histogram is None:
            labels = method if method in _METHODS else OTHER_METHOD, route or UNMATCHED
            histogram = self._requests.labels(*labels, f"{status // 100}xx")
            if method in _METHODS:
                self._known_requests[kind] = histogram
        histogram.observe(seconds)

    def phase(self, phase: Phase, seconds: float) -> None:
        self._phases[phase].observe(seconds)

    def decided(self, outcome: Outcome, *, catalog_managed: bool, code: Code | None) -> None:
        self._proposals[catalog_managed, outcome].inc()
        if code is not None:
            self._problems.labels(outcome.value, code.value).inc()

    def foreign_commits(self, count: int) -> None:
        self._foreign.inc(count)

    def quarantined(self) -> None:
        self._quarantines.inc()

    def published(self, count: int) -> None:
        self._published.inc(count)

    def kept_up(self, kind: UpkeepKind, outcome: UpkeepOutcome, *, seconds: float) -> None:
        self._upkeep_runs[kind, outcome].inc()
        self._upkeep_seconds[kind].inc(seconds)

    def cleaned_up(self, files: int) -> None:
        self._cleaned_up.inc(files)


def kind_of(catalog_managed: bool) -> str:
    """A kind of table as a label."""
    return "catalog-managed" if catalog_managed else "plain"
