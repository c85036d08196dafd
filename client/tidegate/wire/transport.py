"""HTTP by httpx. No other module of the client knows the library."""

import platform
from typing import Final

import httpx

from tidegate.version import __version__
from tidegate.wire.exchange import REQUEST_ID_HEADER, Answer, Request, Response, TransportFailure
from tidegate.wire.tracing import trace_headers

API_ROOT: Final = "/api/v1"
USER_AGENT: Final = (
    f"tidegate-python/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}"
)
CONNECT_S: Final = 5.0
APPLICATION_HEADER: Final = "X-Spark-Application-Id"
_IS_IT_THERE: Final = (
    "is the service running there, and with TLS for https? TIDEGATE_URL or connect(url) names it"
)

# Raised before the first byte of a request is written. LocalProtocolError and ProxyError are not
# among them: both can also end a request that is under way.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class HttpTransport:
    """One pool of connections to one service, safe to share between threads.

    Each call is sent once: httpx's own retries are off and redirects are not followed.
    """

    def __init__(self, url: str, *, token: str | None) -> None:
        headers = {"User-Agent": USER_AGENT}
        self._token = None if token is None else "***"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._client = httpx.Client(
            base_url=url + API_ROOT,
            headers=headers,
            follow_redirects=False,
            # A thread that waits for a pooled connection only loses time; the flow's deadline
            # and the service's own limits bound how many calls are under way.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    def __repr__(self) -> str:
        return f"HttpTransport({self._url!r}, token={self._token!r})"

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.body is not None and not isinstance(request.body, bytes):
            headers["Content-Length"] = str(request.body.size)
        if request.request_id is not None:
            headers[REQUEST_ID_HEADER] = request.request_id
        if request.application_id is not None:
            headers[APPLICATION_HEADER] = request.application_id
        headers.update(trace_headers())
        try:
            response = self._client.request(
                request.method,
                request.path,
                params=dict(request.query) or None,
                content=request.body,
                headers=headers,
                timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
            )
        except httpx.RequestError as error:
            what = str(error) or "no answer in time"
            is_sent = not isinstance(error, _NOT_SENT)
            where = "" if is_sent else f" ({_IS_IT_THERE})"
            return TransportFailure(
                sent=is_sent,
                detail=f"{request} at {self._url}: {type(error).__name__}: {what}{where}",
            )
        return Response(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=response.content,
        )

    def close(self) -> None:
        self._client.close()
