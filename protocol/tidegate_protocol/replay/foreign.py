"""Commits that other writers put into a plain table's log, past the coordinator.

They are part of the log whatever they hold; whether the coordinator can go on with them is
decided here. What it does not understand ends its commits to the table, never its log.
"""

from collections.abc import Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.properties import IN_COMMIT_TIMESTAMPS
from tidegate_protocol.features.row_tracking import DOMAIN, InvalidHighWaterMark, high_water_mark
from tidegate_protocol.features.table_features import check_supported
from tidegate_protocol.log.actions import Action, DomainMetadata, Metadata, Protocol
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.prepare.table import check_features, is_catalog_managed, parse_metadata
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.replay.commits import (
    MAX_TIMESTAMP,
    UnreadableCommit,
    body_digest,
    commit_info,
    parse_commit,
    timestamp_of,
)


class RefusedCommit(UnreadableCommit):
    """A commit that can be read and asks for what cannot be carried; `refusal` says what."""

    def __init__(self, detail: str, refusal: Invalid) -> None:
        super().__init__(detail)
        self.refusal = refusal


def parse_foreign_commit(
    content: bytes | LogFile, *, catalog_managed: bool = False
) -> tuple[Action, ...]:
    """The actions of a foreign `<v>.json`; `catalog_managed` where the coordinator itself is the
    table's catalog, and reads its log again.

    Raises `UnreadableCommit` where it is no commit, in its form `RefusedCommit` where its
    protocol or metadata asks for what is not supported.
    """
    # What the service has ratified is strict.
    actions = parse_commit(content, strict=catalog_managed)
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


def in_commit_timestamp(
    version: int, actions: Sequence[Action], *, before: Metadata | None
) -> int | None:
    """The time in ms by which readers of the log date a commit: its in-commit timestamp, where the
    table has them switched on; `before` is the table's metadata before the commit. None where they
    date it by its file, or where it says a time before 1970.

    Raises `UnreadableCommit` where no later version could have one after it: they have to increase.
    """
    metadata = next((action for action in actions if isinstance(action, Metadata)), before)
    info = commit_info(actions)
    if metadata is None or info is None or info.in_commit_timestamp is None:
        return None
    if metadata.configuration.get(IN_COMMIT_TIMESTAMPS, "").lower() != "true":
        return None
    if info.in_commit_timestamp > MAX_TIMESTAMP + version:
        raise UnreadableCommit(
            f"its in-commit timestamp is {info.in_commit_timestamp} ms, after the year 9999 "
            f"(expected at most {MAX_TIMESTAMP + version}), and those of all later versions would "
            "have to lie beyond it"
        )
    return info.in_commit_timestamp if info.in_commit_timestamp >= 0 else None


def committed_ms(
    version: int, actions: Sequence[Action], *, before: Metadata | None, modified_ms: int
) -> int:
    """The date of a version, in ms, by Delta's rule: the in-commit timestamp where the table has
    them switched on, else `modified_ms`, the modification time of the file. A modification time
    outside 0 to `MAX_TIMESTAMP + version` counts as the nearer end. A commit of this service keeps
    the date in the answer to its client. Raises like `in_commit_timestamp`."""
    in_commit = in_commit_timestamp(version, actions, before=before)
    if in_commit is not None:
        return in_commit
    of_file = min(max(0, modified_ms), MAX_TIMESTAMP + version)
    info = commit_info(actions)
    is_ours = info is not None and body_digest(info) is not None
    return timestamp_of(version, actions, fallback=of_file) if is_ours else of_file


def _unusable_mark(action: DomainMetadata) -> Invalid | None:
    """Row ids are counted on from what others wrote; not from what says no number."""
    if action.domain == DOMAIN:
        try:
            high_water_mark(action)
        except InvalidHighWaterMark as error:
            return Invalid(code=Code.INVALID_ACTION, detail=str(error))
    return None
