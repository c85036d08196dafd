"""Commits that other writers put into a plain table's log, past the coordinator.

They are part of the log whatever they hold; whether the coordinator can go on with them is
decided here. What it does not understand ends its commits to the table, never its log.
"""

from tidegate_protocol.actions import Action, DomainMetadata, Metadata, Protocol
from tidegate_protocol.commits import UnreadableCommit, parse_commit
from tidegate_protocol.features import check_supported
from tidegate_protocol.known_features import CATALOG_MANAGED
from tidegate_protocol.prepare_table import check_features, is_catalog_managed, parse_metadata
from tidegate_protocol.problems import Code
from tidegate_protocol.row_tracking import DOMAIN, InvalidHighWaterMark, high_water_mark
from tidegate_protocol.transaction import Invalid


class RefusedCommit(UnreadableCommit):
    """A commit that can be read and asks for what cannot be carried; `refusal` says what."""

    def __init__(self, detail: str, refusal: Invalid) -> None:
        super().__init__(detail)
        self.refusal = refusal


def parse_foreign_commit(content: bytes, *, catalog_managed: bool = False) -> tuple[Action, ...]:
    """The actions of a foreign `<v>.json`; `catalog_managed` where the coordinator itself is the
    table's catalog, and reads its log again.

    Raises `UnreadableCommit` where it is no commit, in its form `RefusedCommit` where its
    protocol or metadata asks for what is not supported.
    """
    actions = parse_commit(content)
    for action in actions:
        refused = refusal(action, catalog_managed=catalog_managed)
        if refused is not None:
            what = "protocol" if isinstance(action, Protocol) else "metadata"
            raise RefusedCommit(f"it changed the {what}: {refused.detail}", refused)
    return actions


def refusal(action: Action, *, catalog_managed: bool = False) -> Invalid | None:
    """What keeps a table that others write to from having this protocol or metadata here; None
    for any other action."""
    if isinstance(action, Protocol):
        unsupported = check_supported(action)
        if unsupported is None and is_catalog_managed(action) and not catalog_managed:
            unsupported = Invalid(
                code=Code.UNSUPPORTED_FEATURE,
                detail=f"the feature {CATALOG_MANAGED} says that a catalog ratifies the table's "
                "commits, and that is not this one",
            )
        return unsupported
    if isinstance(action, Metadata):
        parsed = parse_metadata(action)
        return parsed if isinstance(parsed, Invalid) else check_features(*parsed)
    if isinstance(action, DomainMetadata):
        return _unusable_mark(action)
    return None


def _unusable_mark(action: DomainMetadata) -> Invalid | None:
    """Row ids are counted on from what others wrote; not from what says no number."""
    if action.domain == DOMAIN:
        try:
            high_water_mark(action)
        except InvalidHighWaterMark as error:
            return Invalid(code=Code.INVALID_ACTION, detail=str(error))
    return None
