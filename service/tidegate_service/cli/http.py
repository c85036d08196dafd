"""One JSON call to a running service, by the standard library: the command line needs no more."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from tidegate_service.cli.options import fail

TIMEOUT_S = 60.0

# A service on this machine is not asked through a proxy that the environment names.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(url: str, method: str, path: str, body: object = None) -> dict[str, Any]:
    """The answer's JSON. Ends the process with the problem's detail where there is one."""
    if not url.startswith(("http://", "https://")):
        fail(f"expected a service URL like http://127.0.0.1:8720, found {url!r}")
    request = urllib.request.Request(
        f"{url.rstrip('/')}/api/v1{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Accept": "application/json", "Content-Type": "application/json"},
    )
    try:
        with _DIRECT.open(request, timeout=TIMEOUT_S) as response:
            found: object = json.load(response)
    except urllib.error.HTTPError as error:
        fail(_refusal(error))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        fail(f"{url} does not answer as a Tidegate service does: {reason}; is it running there?")
    if not isinstance(found, dict):
        fail(f"{url} does not answer as a Tidegate service does")
    return found


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        problem = json.load(error)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {error.code} {error.reason}"
    hint = problem.get("hint")
    return f"{code}: {detail}" + (f"\nhint: {hint}" if hint else "")
