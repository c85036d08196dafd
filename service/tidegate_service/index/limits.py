"""How much the index does in one statement, and holds of what it reads."""

from dataclasses import dataclass

from tidegate_service.core.ports.checkpoints import SMALL_ACTION_LIMITS, SmallActionLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingLimits:
    """A table is counted where it has `rows` of files at most, which takes some ten milliseconds.
    Files are told one by one, as Delta does, where there are `files` of `file_bytes` at most;
    deletion vectors are looked at where there are `vectors` of `vector_bytes`, and application
    transactions, or domains, are told where there are `small_actions` of `small_action_bytes`."""

    rows: int = 20_000
    files: int = 50
    file_bytes: int = 256 * 1024
    vectors: int = 2_000
    vector_bytes: int = 4 * 1024 * 1024
    small_actions: int = 1_000
    small_action_bytes: int = 1024 * 1024


COUNTING_LIMITS = CountingLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLimits:
    """A page of live files has log lines of `file_page_bytes`, beside the one that is too many.
    Scans choose their files `partitions_a_page`, and what a table has is forgotten
    `forgotten_commits`, `forgotten_files` and `forgotten_ids` a statement: each of them has the
    time for so many. Winning commits are read `winners_a_page`, and decoded in a thread where their
    contents are longer than `winners_inline_bytes` together; one that is longer than
    `content_piece_bytes` as it is stored is read in pieces of so many, as every content is. Rows of
    commits are sent after `staged_commits` at the latest.

    Of the versions that wait to be published, a statement reads `waiting_bytes` of a table as they
    are stored, and `waiting_bytes_at_once` of all its tables; so many at a time are expanded as
    have `expanded_bytes`; a larger one is alone, and all such ones that are held take
    `published_bytes` as they are stored. While a table is made anew, they are put aside
    `kept_bytes` a statement.

    A creation asks again for its location, where others hold it, for `claim_s`.

    A version is compared with its log by statements of `compared_rows` and `compared_bytes`.

    A page of a snapshot has `snapshot_files_a_page` and `snapshot_page_bytes` of log lines, beside
    the one that is too many; one of its other actions has `small_actions_a_page` and
    `small_actions_page_bytes`.

    Of versions that expire, `expired_versions` leave the index in a transaction, of
    `expired_bytes` as they are stored, beside the one that is too many: each of 2 KiB is a row of
    its own where Postgres keeps such values, and a commit waits for the deletion of all of them.
    `expired_metadata` of them may have changed protocol or metadata, since ids are looked for in
    each. Of removed files, `expired_files` are looked at in a transaction, and `expired_tombstones`
    deleted.

    Where `unanswered` sessions were left that wait for a synchronous standby, those of other
    instances included, nothing more is begun.
    """

    file_page_bytes: int = 4 * 1024 * 1024
    partitions_a_page: int = 500
    forgotten_commits: int = 20_000
    forgotten_files: int = 50_000
    forgotten_ids: int = 20_000
    winners_a_page: int = 200
    winners_inline_bytes: int = 128 * 1024
    content_piece_bytes: int = 512 * 1024
    staged_commits: int = 500
    waiting_bytes: int = 256 * 1024
    waiting_bytes_at_once: int = 4 * 1024 * 1024
    expanded_bytes: int = 1024 * 1024
    published_bytes: int = 1024**3
    kept_bytes: int = 64 * 1024 * 1024
    claim_s: float = 5.0
    compared_rows: int = 5_000
    compared_bytes: int = 2 * 1024 * 1024
    snapshot_files_a_page: int = 5_000
    snapshot_page_bytes: int = 8 * 1024 * 1024
    small_actions: SmallActionLimits = SMALL_ACTION_LIMITS
    small_actions_a_page: int = 5_000
    small_actions_page_bytes: int = 4 * 1024 * 1024
    expired_versions: int = 500
    expired_bytes: int = 16 * 1024 * 1024
    expired_metadata: int = 50
    expired_files: int = 20_000
    expired_tombstones: int = 5_000
    counting: CountingLimits = COUNTING_LIMITS
    unanswered: int = 20


DEFAULTS = IndexLimits()
