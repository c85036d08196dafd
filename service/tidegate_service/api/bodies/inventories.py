"""An inventory as a body: a line of what is asked, then a line for each file that there is."""

from typing import Annotated

import msgspec
from fastapi import Request
from msgspec import Meta, Struct

from tidegate_protocol.base.problems import Code
from tidegate_service.api.bodies.decoding import decode_envelope, read_body
from tidegate_service.api.bodies.resources import VacuumBody
from tidegate_service.api.bodies.streaming import read_into
from tidegate_service.api.http.problems.problems import BadRequest, BodyError
from tidegate_service.api.http.request.requests import (
    JSON,
    NDJSON,
    context_of,
    max_stream_bytes_of,
    media_type,
    state_of,
)
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.core.vacuum.inventory import Inventory
from tidegate_service.core.vacuum.request import VacuumRequest

MAX_LINE_BYTES = 64 * 1024
MAX_PATH = 4_096
"""Characters; stores take no longer ones."""
_LEAST, _MOST = -(2**63), 2**63 - 1


class InventoryLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file or folder as Delta's inventories have it; `modification_time` in ms."""

    path: Annotated[str, Meta(min_length=1, max_length=MAX_PATH)]
    length: Annotated[int, Meta(ge=0, le=_MOST)]
    modification_time: Annotated[int, Meta(ge=_LEAST, le=_MOST)]
    is_dir: bool = False


_BODY = msgspec.json.Decoder(VacuumBody)
_LINE = msgspec.json.Decoder(InventoryLine)


class _Lines:
    """A `Reader` that keeps in memory an unfinished line, and what the inventory sorts there."""

    def __init__(self, who: str | None) -> None:
        self.inventory = Inventory(who=who)
        self.body: VacuumBody | None = None
        self._rest = b""
        self._count = 0

    @property
    def size(self) -> int:
        return len(self._rest) + self.inventory.held_bytes

    def feed(self, piece: bytes) -> None:
        rests = Rests()
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise Refused(f"a line has more than {MAX_LINE_BYTES} bytes", code=Code.TOO_LARGE)
        self._take(lines)
        rests()

    def end(self) -> None:
        """The last line need not end."""
        self._take([self._rest])
        self._rest = b""

    def _take(self, lines: list[bytes]) -> None:
        files = []
        for line in filter(None, lines):
            self._count += 1
            if self.body is None:
                self.body = decode_envelope(line, _BODY)
                continue
            file = self._file(line)
            if not file.is_dir:
                files.append(
                    DataFile(path=file.path, size=file.length, modified_ms=file.modification_time)
                )
        self.inventory.add(files)

    def _file(self, line: bytes) -> InventoryLine:
        try:
            file = _LINE.decode(line)
        except msgspec.DecodeError as error:
            raise BadRequest([BodyError(where=f"line {self._count}", why=str(error))]) from None
        if "\0" in file.path:
            why = "expected a path without a zero character"
            raise BadRequest([BodyError(where=f"line {self._count}", why=why)])
        return file


async def read_vacuum(request: Request) -> VacuumRequest:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken."""
    if media_type(request, JSON, NDJSON) == JSON:
        body = await read_body(request, lambda content: decode_envelope(content, _BODY))
        return _asked(body, None)
    lines = _Lines(context_of(request).who)
    state_of(request).at_end.append(lines.inventory.close)
    await read_into(lines, request, max_bytes=max_stream_bytes_of(request))
    if lines.body is None:
        raise BadRequest([BodyError(where="line 1", why="expected what is asked, found nothing")])
    return _asked(lines.body, lines.inventory)


def _asked(body: VacuumBody, inventory: Inventory | None) -> VacuumRequest:
    return VacuumRequest(
        retain_ms=body.retain_ms,
        allow_shorter=body.allow_shorter,
        dry_run=body.dry_run,
        inventory=inventory,
    )
