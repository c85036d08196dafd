"""The docs page: Swagger UI over `/openapi.json`, every file of it served from here.

Swagger UI's own files come with the package `fastapi-offline`; its Python is not used. The
content security policy keeps the browser from asking any other host for anything.
"""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tidegate_service.api.routing.policies import Public
from tidegate_service.api.routing.route import Route

_OURS = Path(__file__).parent / "static"
_JAVASCRIPT = "text/javascript; charset=utf-8"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    media_type: str
    etag: str

    @classmethod
    def read(cls, path: Path, media_type: str) -> "_Asset":
        content = path.read_bytes()
        return cls(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def docs_router() -> APIRouter:
    """Routes of the page and its files. Raises `FileNotFoundError` where one is missing."""
    theirs = _swagger_ui()
    page = (_OURS / "docs.html").read_bytes()
    assets = {
        "swagger-ui-bundle.js": _Asset.read(theirs / "swagger-ui-bundle.js", _JAVASCRIPT),
        "swagger-ui.css": _Asset.read(theirs / "swagger-ui.css", "text/css; charset=utf-8"),
        "docs.js": _Asset.read(_OURS / "docs.js", _JAVASCRIPT),
        "favicon.svg": _Asset.read(_OURS / "favicon.svg", "image/svg+xml"),
    }
    router = APIRouter(include_in_schema=False, route_class=Route)

    @router.get("/docs", dependencies=[Depends(Public())])
    async def docs() -> Response:
        return Response(
            page,
            media_type="text/html; charset=utf-8",
            headers={"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"},
        )

    @router.get("/docs/static/{name}", dependencies=[Depends(Public())])
    async def static(request: Request, name: str) -> Response:
        asset = assets.get(name)
        if asset is None:
            raise HTTPException(404)
        headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    return router


def _swagger_ui() -> Path:
    spec = find_spec("fastapi_offline")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            "the docs page needs the package fastapi-offline; install tidegate[service]"
        )
    return Path(spec.submodule_search_locations[0]) / "static"
