"""The real service for tests: the composed application behind uvicorn on a port of its own."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import uvloop

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEMS
from tidegate_service.api.answers import types, upkeep, verification
from tidegate_service.api.http.problems.problems import ProblemBody
from tidegate_service.api.http.request.limits import USUAL, ServerLimits
from tidegate_service.api.server.server import Server, bound_socket, url_of
from tidegate_service.app import application, serve
from tidegate_service.settings import Settings

START_S = 60
STOP_S = 20


@dataclass(frozen=True, slots=True)
class Running:
    """A service that answers at `url`."""

    url: str
    loop: asyncio.AbstractEventLoop
    server: Server
    thread: threading.Thread

    def stop(self) -> None:
        """Tell it to stop, as a signal would, without waiting."""
        self.loop.call_soon_threadsafe(self.server.stop)

    def join(self) -> None:
        self.thread.join(STOP_S)
        assert not self.thread.is_alive(), "the service did not end"


@contextmanager
def running(settings: Settings, limits: ServerLimits = USUAL) -> Iterator[Running]:
    """Serve in a thread with an event loop of its own; what fails there is raised here."""
    listener = bound_socket(settings.host, settings.port)
    started = threading.Event()
    failures: list[BaseException] = []
    servers: list[Server] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await serve(
            settings,
            listener,
            on_started=lambda _: started.set(),
            on_server=servers.append,
            limits=limits,
        )

    def run() -> None:
        try:
            uvloop.run(main())
        except BaseException as error:
            failures.append(error)
        finally:
            started.set()
            listener.close()

    url = url_of(listener)
    thread = threading.Thread(target=run, name="service", daemon=True)
    thread.start()
    assert started.wait(START_S), "the service did not start"
    if failures:
        raise failures[0]
    service = Running(url, loops[0], servers[0], thread)
    try:
        yield service
    finally:
        if thread.is_alive():
            service.stop()
            # A second signal does not wait for what is under way.
            service.stop()
        service.join()
        if failures:
            raise failures[0]


OF_NO_PAGE = {"X-Requested-With": "a program"}
"""Without a token or a body's media type, what tells a program from a page of another origin."""


class DocumentedClient(httpx.Client):
    """An HTTP client that holds every answer against the OpenAPI document.

    An answer of a documented operation must have a documented status, a body of the documented
    type, and, for a problem, a code that the operation names.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.headers.update(OF_NO_PAGE)

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        response = super().send(request, **options)
        operation = operation_of(request.method, request.url.raw_path.split(b"?")[0].decode())
        if not options.get("stream"):
            check_answer(response, operation)
        return response


def check_answer(response: httpx.Response, operation: dict[str, Any] | None) -> None:
    assert response.headers["x-request-id"]
    if response.is_error:
        check_problem(response, operation)
    elif operation is not None:
        documented = operation["responses"][str(response.status_code)].get("content", {})
        media_type = response.headers.get("content-type", "").partition(";")[0]
        assert media_type in documented or not documented
        name = documented.get(media_type, {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name:
            msgspec.json.decode(response.content, type=answer_type(name))


def answer_type(name: str) -> Any:
    """The type of an answer by its name in the OpenAPI document."""
    return (vars(types) | vars(upkeep) | vars(verification))[name]


def check_problem(response: httpx.Response, operation: dict[str, Any] | None) -> None:
    assert response.headers["content-type"] == PROBLEM_MEDIA_TYPE
    problem = msgspec.json.decode(response.content, type=ProblemBody)
    assert problem.status == response.status_code == PROBLEMS[problem.code].status
    assert problem.title == PROBLEMS[problem.code].title
    assert problem.retryable == PROBLEMS[problem.code].retryable
    assert problem.type == f"urn:tidegate:problem:{problem.code}"
    assert problem.instance == response.headers["x-request-id"]
    assert problem.detail
    assert ("retry-after" in response.headers) == (response.status_code in (429, 503))
    if operation is not None:
        documented = operation["responses"][str(response.status_code)]["content"][
            PROBLEM_MEDIA_TYPE
        ]
        assert problem.code in documented["examples"], f"{problem.code} is not documented"


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The documented operation that a request is for, the most literal path first."""
    found = [
        (template, methods[method.lower()])
        for template, methods in document()["paths"].items()
        if method.lower() in methods and _matches(template, path)
    ]
    return min(found, key=lambda pair: pair[0].count("{"))[1] if found else None


_document: dict[str, Any] = {}


def document() -> dict[str, Any]:
    """The OpenAPI document, as JSON brings it."""
    if not _document:
        _document.update(json.loads(json.dumps(application().openapi())))
    return _document


def _matches(template: str, path: str) -> bool:
    pattern = re.sub(r"\\{app_id\\}", ".+", re.escape(template))
    return re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", pattern), path) is not None
