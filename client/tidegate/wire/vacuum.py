"""What VACUUM is asked, and what it answers: a line for each second that it takes."""

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from msgspec import Struct

from tidegate.errors import ServiceUnavailable, UnexpectedAnswer
from tidegate.wire.exchange import Request, Response, segment
from tidegate.wire.problems import ERRORS
from tidegate_protocol.base.problems import Code

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """What became of a vacuum.

    `listed` files were looked at. `found` of them, of `found_bytes`, are in no version within the
    retention; `deleted` are gone, and so are so many empty `folders`. `paths` are what a dry run
    would delete, relative to the table. `version` is that of the `VACUUM END` commit, None after a
    dry run. `warnings` name tables that name files of this one.
    """

    listed: int
    found: int
    found_bytes: int
    deleted: int
    folders: int
    version: int | None
    paths: tuple[str, ...]
    warnings: tuple[str, ...]


class _Line(Struct, frozen=True, kw_only=True):
    stage: str
    listed: int = 0
    found: int = 0
    found_bytes: int = 0
    deleted: int = 0
    folders: int = 0
    version: int | None = None
    paths: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    code: str | None = None
    detail: str = ""


_LINE = msgspec.json.Decoder(_Line)


def vacuum_request(
    table_id: str, *, retain: timedelta | None, allow_shorter: bool, dry_run: bool
) -> Request:
    body: dict[str, object] = {"allow_shorter": allow_shorter, "dry_run": dry_run}
    if retain is not None:
        # Up to the millisecond: rounding down could be shorter than what is allowed.
        body["retain_ms"] = -(-retain // _MILLISECOND)
    return Request(
        method="POST", path=f"/tables/{segment(table_id)}/vacuum", body=msgspec.json.encode(body)
    )


def vacuumed(response: Response) -> Vacuumed:
    """Raises the error that ended it, with what was deleted before in its text."""
    try:
        lines = [_LINE.decode(line) for line in response.body.splitlines()[1:]]
        last = lines[-1]
    except (msgspec.DecodeError, ValueError, IndexError) as error:
        raise UnexpectedAnswer(
            f"expected the lines of a vacuum: {error}", status=response.status
        ) from error
    if last.stage == "failed":
        raise _error(last)
    if last.stage != "ended":
        raise UnexpectedAnswer(
            f"expected a vacuum to its end, found one at {last.stage}", status=response.status
        )
    return Vacuumed(
        listed=last.listed,
        found=last.found,
        found_bytes=last.found_bytes,
        deleted=last.deleted,
        folders=last.folders,
        version=last.version,
        paths=tuple(path for line in lines for path in line.paths),
        warnings=tuple(warning for line in lines for warning in line.warnings),
    )


def _error(last: _Line) -> Exception:
    known = next((code for code in Code if code.value == last.code), None)
    kind = ServiceUnavailable if known is None else ERRORS[known]
    detail = f"{last.detail}; {last.deleted} of {last.found} files were deleted before"
    return kind(detail, code=last.code)
