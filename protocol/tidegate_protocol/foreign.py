"""Commits that other writers put into a plain table's log, past the coordinator.

They are part of the log whatever they hold; whether the coordinator can go on with them is
decided here. What it does not understand ends its commits to the table, never its log.
"""

from tidegate_protocol.actions import Action, Metadata, Protocol
from tidegate_protocol.commits import UnreadableCommit, parse_commit
from tidegate_protocol.features import check_supported
from tidegate_protocol.prepare_table import check_features, is_catalog_managed, parse_metadata
from tidegate_protocol.transaction import Invalid


def parse_foreign_commit(content: bytes) -> tuple[Action, ...]:
    """The actions of a foreign `<v>.json`.

    Raises `UnreadableCommit` where it is no commit, and where its protocol or metadata asks for
    what is not supported.
    """
    actions = parse_commit(content)
    for action in actions:
        refusal = _refusal(action)
        if refusal is not None:
            raise UnreadableCommit(refusal)
    return actions


def _refusal(action: Action) -> str | None:
    if isinstance(action, Protocol):
        unsupported = check_supported(action)
        if unsupported is not None:
            return f"it changed the protocol: {unsupported.detail}"
        if is_catalog_managed(action):
            return "it made a plain table catalog-managed"
    if isinstance(action, Metadata):
        parsed = parse_metadata(action)
        unsupported = parsed if isinstance(parsed, Invalid) else check_features(*parsed)
        if unsupported is not None:
            return f"it changed the metadata: {unsupported.detail}"
    return None
