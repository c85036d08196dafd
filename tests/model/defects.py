"""Defects that a model can be given, each of which must break a promise in it.

Without any of them a model is what the service does; each one takes a rule of the commit path
away, or a premise.
"""

from enum import Enum


class Defect(Enum):
    """What is wrong; the value says it in a sentence."""

    # Plain tables: the commit is the PUT.
    ABORT_WITHOUT_FENCE = "an abort closes the id and takes no version"
    FENCE_CONTENT_WITH_TAKEN = "a fence takes another's version after the head for its own work"
    INVALID_WITHOUT_FENCE = "Invalid closes the id without a fence"
    INVALID_AT_STALE_HEAD = "Invalid is answered by the index's head, not by the log's end"
    TOO_OLD_WITHOUT_FENCE = "read-version-too-old is answered without a fence"
    LATE_PUT_NOT_AWAITED = "a PUT without an answer is given up for the next version"
    UNKNOWN_TAKEN_FOR_FAILURE = "a PUT or COMMIT without an answer is told as a failure"
    DECISION_REUSED = "after a taken version the same decision goes to the next one"
    ID_NOT_LOOKED_UP_AGAIN = "after a taken version the decision is taken again without the id"
    IDS_FORGOTTEN_WITH_TABLE = "forgetting a table forgets its ids"
    CLEANED_LOG_NOT_SEEN = "a log that was cleaned up past the index is not looked for"
    # Either kind.
    INDEX_READ_BEFORE_LOCK = "ids and winners are read before the row lock is granted"
    ACK_BEFORE_COMMIT = "success is answered before COMMIT is"
    # Catalog-managed tables: the commit is Postgres's COMMIT.
    NO_LOOK_AFTER_RESTORE = "nobody looks for the next published version after a restore"
    MISSING_TABLE_IS_DEFINITE = "404 for a table is told as definite to a later attempt"
    CONTENT_FORGOTTEN_EARLY = "inline bytes are forgotten (M10) before they are published (M9)"
    PUBLISHED_OUT_OF_ORDER = "a publisher does not wait for the version before"
    REBUILD_DROPS_UNPUBLISHED = "a rebuild takes the log alone and drops what waits for publishing"
    # Premises, which the documents name.
    RETENTION_SHORTER_THAN_RETRIES = "the log is cleaned up past what the index has not read"
    RESTORE_UNDER_A_PUBLISHER = "the database is restored while an instance is still publishing"
