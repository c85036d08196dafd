"""Which models are explored, and which of them each defect must turn red."""

from dataclasses import dataclass

from tests.model import managed, plain
from tests.model.defects import Defect
from tests.model.explore import Model
from tests.model.managed import ManagedModel
from tests.model.plain import PlainModel

APPEND, READER = plain.Kind.APPEND, plain.Kind.READER
OF_FOREIGN, NEEDS_OTHER = plain.Kind.READER_OF_FOREIGN, plain.Kind.NEEDS_OTHER
NEEDS_FOREIGN, ENDS = plain.Kind.NEEDS_FOREIGN, plain.Kind.ENDS_WITH_FOREIGN
_M_APPEND, _M_READER = managed.Kind.APPEND, managed.Kind.READER


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model by its kind of table, its two proposals, and how long its log may become."""

    kinds: tuple[plain.Kind, plain.Kind] | tuple[managed.Kind, managed.Kind]
    versions: int

    def model(self, defect: Defect | None = None) -> Model:
        first, second = self.kinds
        if isinstance(first, plain.Kind):
            assert isinstance(second, plain.Kind)
            return PlainModel((first, second), versions=self.versions, defect=defect)
        assert isinstance(second, managed.Kind)
        return ManagedModel((first, second), versions=self.versions, defect=defect)

    @property
    def name(self) -> str:
        table = "plain" if isinstance(self.kinds[0], plain.Kind) else "managed"
        kinds = "-".join(kind.name.lower() for kind in self.kinds)
        return f"{table}-{kinds}-{self.versions}"


def _plain(*kinds: plain.Kind, versions: int = 3) -> Case:
    return Case(kinds=(kinds[0], kinds[1]), versions=versions)


def _managed(*kinds: managed.Kind) -> Case:
    return Case(kinds=(kinds[0], kinds[1]), versions=2)


GREEN = (
    _plain(APPEND, OF_FOREIGN, versions=2),
    _plain(APPEND, NEEDS_OTHER, versions=2),
    _plain(READER, NEEDS_FOREIGN, versions=2),
    _managed(_M_APPEND, _M_APPEND),
    _managed(_M_APPEND, _M_READER),
    _managed(_M_READER, _M_READER),
)
"""What every run of the tests explores wholly."""
LONG = (
    _plain(APPEND, APPEND),
    _plain(APPEND, READER),
    _plain(APPEND, OF_FOREIGN),
    _plain(APPEND, NEEDS_OTHER),
    _plain(APPEND, NEEDS_FOREIGN),
    _plain(READER, ENDS),
    _plain(NEEDS_OTHER, NEEDS_FOREIGN),
    _plain(APPEND, READER, versions=4),
    _plain(APPEND, NEEDS_OTHER, versions=4),
    _plain(APPEND, APPEND, versions=4),
    _plain(ENDS, NEEDS_FOREIGN, versions=4),
    _plain(OF_FOREIGN, NEEDS_OTHER, versions=4),
)
"""What `make chaos` explores beside."""
RED = {
    Defect.ABORT_WITHOUT_FENCE: _plain(APPEND, APPEND),
    Defect.FENCE_CONTENT_WITH_TAKEN: _plain(APPEND, APPEND),
    Defect.INVALID_WITHOUT_FENCE: _plain(APPEND, NEEDS_OTHER),
    Defect.INVALID_AT_STALE_HEAD: _plain(APPEND, NEEDS_FOREIGN),
    Defect.TOO_OLD_WITHOUT_FENCE: _plain(APPEND, OF_FOREIGN),
    Defect.LATE_PUT_NOT_AWAITED: _plain(APPEND, APPEND),
    Defect.UNKNOWN_TAKEN_FOR_FAILURE: _plain(APPEND, APPEND),
    Defect.DECISION_REUSED: _plain(APPEND, READER),
    Defect.ID_NOT_LOOKED_UP_AGAIN: _plain(APPEND, APPEND),
    Defect.IDS_FORGOTTEN_WITH_TABLE: _plain(APPEND, APPEND),
    Defect.CLEANED_LOG_NOT_SEEN: _plain(APPEND, APPEND, versions=4),
    Defect.INDEX_READ_BEFORE_LOCK: _plain(APPEND, READER),
    Defect.ACK_BEFORE_COMMIT: _managed(_M_APPEND, _M_APPEND),
    Defect.NO_LOOK_AFTER_RESTORE: _managed(_M_APPEND, _M_APPEND),
    Defect.MISSING_TABLE_IS_DEFINITE: _managed(_M_APPEND, _M_APPEND),
    Defect.CONTENT_FORGOTTEN_EARLY: _managed(_M_APPEND, _M_APPEND),
    Defect.PUBLISHED_OUT_OF_ORDER: _managed(_M_APPEND, _M_APPEND),
    Defect.REBUILD_DROPS_UNPUBLISHED: _managed(_M_APPEND, _M_APPEND),
    Defect.RETENTION_SHORTER_THAN_RETRIES: _plain(APPEND, APPEND, versions=4),
    Defect.RESTORE_UNDER_A_PUBLISHER: _managed(_M_APPEND, _M_APPEND),
}
"""A case that shows each defect."""
