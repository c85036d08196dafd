"""Calls with JSON to a running service, by the standard library: the command line needs no more."""

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from tidegate_service.cli.options import fail

TIMEOUT_S = 60.0

TOKEN_VARIABLE = "TIDEGATE_TOKEN"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The service sends none, and whoever does is not to be shown the token."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


# A service on this machine is not asked through a proxy that the environment names.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def call(url: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    """The answer's JSON, `{}` where it has no body. Ends the process with the problem's detail
    where there is one.

    The token is the environment's: every user of a machine sees its command lines.
    """
    with (
        _answered(url),
        _DIRECT.open(_request(url, method, path, body), timeout=TIMEOUT_S) as response,
    ):
        found: object = {} if response.status == 204 else json.load(response)
    if not isinstance(found, dict):
        fail(f"{url} does not answer as a Tidegate service does")
    return found


def lines(
    url: str, method: str, path: str, body: object, *, more: Iterable[bytes] | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of an NDJSON answer as they come, to a body that may have `more` lines behind it.
    Ends the process as `call` does."""
    with (
        _answered(url),
        _DIRECT.open(_request(url, method, path, body, more), timeout=TIMEOUT_S) as response,
    ):
        for line in response:
            yield json.loads(line)


def _request(
    url: str, method: str, path: str, body: object, more: Iterable[bytes] | None = None
) -> urllib.request.Request:
    if not url.startswith(("http://", "https://")):
        fail(f"expected a service URL like http://127.0.0.1:8720, found {url!r}")
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url.rstrip('/')}/api/v1{path}",
        method=method,
        data=sent if more is None or sent is None else chain([sent, b"\n"], more),
        headers={
            "Accept": "application/json",
            "Content-Type": "application/json" if more is None else "application/x-ndjson",
        },
    )
    if token := os.environ.get(TOKEN_VARIABLE):
        if not (token.isascii() and token.isprintable() and " " not in token):
            # Not repeated: urllib would, in its own refusal.
            fail(f"{TOKEN_VARIABLE} holds no token: there is a space or a line break in it")
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    return request


@contextmanager
def _answered(url: str) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        fail(_refusal(error))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        fail(f"{url} does not answer as a Tidegate service does: {reason}; is it running there?")


def check_ready(url: str, *, timeout_s: float) -> None:
    """Return where the service can take a commit. Ends the process with the reason where it
    cannot, or where nobody answers in time."""
    try:
        with _DIRECT.open(f"{url.rstrip('/')}/readyz", timeout=timeout_s):
            return
    except urllib.error.HTTPError as error:
        fail(_refusal(error))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        fail(f"{url} does not answer: {reason}")


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        problem = json.load(error)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {error.code} {error.reason}"
    hint = problem.get("hint")
    return f"{code}: {detail}" + (f"\nhint: {hint}" if hint else "")
