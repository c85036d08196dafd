"""A real S3 server for tests: one a session, and a prefix of its own for every test."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from demo.s3_server import S3Server, executable
from tests.servers.store_proxy import StoreProxy


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The server; `endpoint`, `access_key`, `secret_key`, `storage_options`, `new_prefix()`."""
    if executable() is None and sys.platform != "linux":
        pytest.skip(
            "there is no wheel of the S3 server for this platform, and no `weed` on the PATH"
        )
    # A short path: it puts sockets there.
    with (
        TemporaryDirectory(prefix="tidegate-s3-", dir="/tmp") as folder,
        S3Server(Path(folder)) as server,
    ):
        yield server


@pytest.fixture
def s3_prefix(s3_server: S3Server) -> str:
    """`s3://<bucket>/<unique>`, where nothing is yet."""
    return s3_server.new_prefix()


@pytest.fixture
def store_proxy(s3_server: S3Server) -> Iterator[StoreProxy]:
    """A proxy in front of the server; no fault is scripted yet."""
    with StoreProxy(s3_server) as proxy:
        yield proxy
