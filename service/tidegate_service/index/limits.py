"""How much the index does in one statement, and holds of what it reads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLimits:
    """A page of live files has log lines of `file_page_bytes`, beside the one that is too many.
    Scans choose their files `partitions_a_page`, and what a table has is forgotten
    `forgotten_commits`, `forgotten_files` and `forgotten_ids` a statement: each of them has the
    time for so many. Winning commits are read `winners_a_page`, and decoded in a thread where their
    contents are longer than `winners_inline_bytes` together. Rows of commits are sent after
    `staged_commits` at the latest.

    Of the versions that wait to be published, a statement reads `waiting_bytes` of a table as they
    are stored, and so many at a time are expanded as have `expanded_bytes`; a larger one is alone.
    While a table is made anew, they are put aside `kept_bytes` a statement.

    A version is compared with its log by statements of `compared_rows` and `compared_bytes`.

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
    staged_commits: int = 500
    waiting_bytes: int = 256 * 1024
    expanded_bytes: int = 1024 * 1024
    kept_bytes: int = 64 * 1024 * 1024
    compared_rows: int = 5_000
    compared_bytes: int = 2 * 1024 * 1024
    unanswered: int = 20


DEFAULTS = IndexLimits()
