"""GCS and Azure as far as it can be told without them: URLs, options, clients, conditions.

What is sent is looked at by a server of our own, which answers like neither.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

SECRET = "Y29ycmVjdC1ob3JzZQ=="
GCS = "gs://lake/warehouse"
AZURE = "abfss://lake@account1.dfs.core.windows.net/warehouse"


class Recorder(ThreadingHTTPServer):
    """Answers every request with one status and keeps what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.code = 200, ""
        self.requests: list[tuple[str, str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def _handle(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.command, self.path, headers))
        body = f"<Error><Code>{self.server.code}</Code></Error>".encode()
        self.send_response(self.server.status)
        self.send_header("ETag", '"etag"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET = _handle

    def log_message(self, format: str, *args: object) -> None:
        """`requests` has them."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    server = Recorder()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def gcs(recorder):
    # A key for emulators: without it, credentials are asked for at the cloud's own address.
    key = {
        "gcs_base_url": recorder.url,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    options = {"google_service_account_key": json.dumps(key), "allow_http": "true"}
    return ObjectStorage(GCS, options=options).log(f"{GCS}/flights")


@pytest.fixture
def azure(recorder):
    options = {
        "azure_endpoint": f"{recorder.url}/account1",
        "azure_storage_account_key": SECRET,
        "allow_http": "true",
    }
    return ObjectStorage(AZURE, options=options).log(f"{AZURE}/flights")


class TestPut:
    async def test_gcs_is_asked_to_create_only(self, gcs, recorder):
        assert await gcs.put_if_absent(7, b"seven\n") is PutResult.CREATED

        ((method, path, headers),) = recorder.requests
        assert (method, unquote(path)) == (
            "PUT",
            "/lake/warehouse/flights/_delta_log/00000000000000000007.json",
        )
        assert headers["x-goog-if-generation-match"] == "0"

    async def test_azure_is_asked_to_create_only(self, azure, recorder):
        assert await azure.put_if_absent(7, b"seven\n") is PutResult.CREATED

        ((method, path, headers),) = recorder.requests
        assert (method, path) == (
            "PUT",
            "/account1/lake/warehouse/flights/_delta_log/00000000000000000007.json",
        )
        assert headers["if-none-match"] == "*"
        assert headers["authorization"].startswith("SharedKey account1:")

    @pytest.mark.parametrize(
        ("store", "status", "code"),
        [
            ("gcs", 412, "PreconditionFailed"),
            ("azure", 412, "ConditionNotMet"),
            # Azure's answer to a create of a blob that is there.
            ("azure", 409, "BlobAlreadyExists"),
        ],
    )
    async def test_a_name_that_is_taken(self, request, recorder, store, status, code):
        recorder.status, recorder.code = status, code
        log = request.getfixturevalue(store)

        assert await log.put_if_absent(7, b"seven\n") is PutResult.EXISTS

    @pytest.mark.parametrize("store", ["gcs", "azure"])
    @pytest.mark.parametrize("status", [409, 429, 500, 503])
    async def test_an_answer_that_proves_nothing(self, request, recorder, store, status):
        recorder.status, recorder.code = status, "Whatever"

        with pytest.raises(StorageUnknown):
            await request.getfixturevalue(store).put_if_absent(7, b"seven\n")
        assert len(recorder.requests) == 1

    @pytest.mark.parametrize("store", ["gcs", "azure"])
    @pytest.mark.parametrize("status", [400, 401, 403, 404])
    async def test_a_refusal(self, request, recorder, store, status):
        recorder.status, recorder.code = status, "Whatever"

        with pytest.raises(StorageUnavailable, match=f"{status} Whatever"):
            await request.getfixturevalue(store).put_if_absent(7, b"seven\n")
        assert len(recorder.requests) == 1

    @pytest.mark.parametrize("store", ["gcs", "azure"])
    async def test_a_missing_file_and_a_missing_bucket_differ(self, request, recorder, store):
        log = request.getfixturevalue(store)
        recorder.status, recorder.code = 404, "NoSuchKey"
        assert await log.read(7) is None

        recorder.code = {"gcs": "NoSuchBucket", "azure": "ContainerNotFound"}[store]
        with pytest.raises(StorageUnavailable):
            await log.read(7)


class TestOptions:
    @pytest.mark.parametrize(
        ("warehouse", "options", "message"),
        [
            (GCS, {"google_nonsense": SECRET}, "'google_nonsense' is not one of gs:// locations"),
            (GCS, {"aws_region": SECRET}, "'aws_region' is for s3:// locations"),
            (GCS, {"google_service_account_key": SECRET}, "no client can be made"),
            (GCS, {"google_bucket": SECRET}, "the location's URL says it"),
            (AZURE, {"azure_storage_account_key": "no base64: !"}, "no client can be made"),
            (AZURE, {"azure_storage_account_name": SECRET}, "the location's URL says it"),
            (AZURE, {"azure_container_name": SECRET}, "the location's URL says it"),
            (AZURE, {"azure_endpoint": SECRET}, "is expected to be an http"),
            ("s3://lake/w", {"aws_conditional_put": SECRET}, "rests on it"),
            ("s3://lake/w", {"timeout": SECRET}, "rests on it"),
            ("s3://lake/w", {"aws_nonsense": SECRET}, "'aws_nonsense' is not one of s3://"),
            ("s3://lake/w", {"nonsense": SECRET}, "'nonsense' is not one of s3:// locations"),
            ("s3://lake/w", {"aws_endpoint": "nonsense"}, "is expected to be an http"),
            ("s3://lake/w", {"aws_unsigned_payload": SECRET}, "no client can be made"),
            ("file:///lake", {"aws_region": SECRET}, "neither the warehouse nor an allowed"),
            ("file:///lake", {"allow_http": SECRET}, "is for object stores"),
        ],
    )
    def test_one_that_cannot_have_an_effect_is_named(self, warehouse, options, message):
        with pytest.raises(StorageUnavailable) as refused:
            ObjectStorage(warehouse, options=options)
        assert message in refused.value.detail
        assert SECRET not in refused.value.detail

    def test_each_store_takes_its_own_of_many(self):
        ObjectStorage(
            GCS,
            [AZURE, "s3://lake/w"],
            options={
                "google_skip_signature": "true",
                "azure_storage_account_key": SECRET,
                "aws_region": "eu-north-1",
                "allow_http": "true",
            },
        )

    async def test_the_account_is_the_locations(self, recorder, monkeypatch):
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "another")
        options = {
            "azure_endpoint": f"{recorder.url}/account1",
            "azure_storage_account_key": SECRET,
            "allow_http": "true",
        }
        await ObjectStorage(AZURE, options=options).log(f"{AZURE}/t").put_if_absent(0, b"")

        assert recorder.requests[0][2]["authorization"].startswith("SharedKey account1:")

    def test_an_address_in_the_environment_is_one(self, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", SECRET)
        with pytest.raises(StorageUnavailable, match="AWS_ENDPOINT_URL is expected") as refused:
            ObjectStorage("s3://lake/w")
        assert SECRET not in refused.value.detail

    async def test_no_environment_switches_conditions_off(self, recorder, monkeypatch):
        monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
        options = {
            "aws_endpoint": recorder.url,
            "aws_access_key_id": "key",
            "aws_secret_access_key": SECRET,
            "allow_http": "true",
        }
        await (
            ObjectStorage("s3://lake/w", options=options).log("s3://lake/w/t").put_if_absent(0, b"")
        )

        assert recorder.requests[0][2]["if-none-match"] == "*"
