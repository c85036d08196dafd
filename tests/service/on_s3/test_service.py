"""The whole service with its warehouse on S3: started, written to, restarted, read by others."""

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.process.cli.command_line import invoke, serving

NAME = "main.air.flights"
SECRET = "correct-horse-battery"


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_what_was_committed_outlives_the_service(start_service, s3_prefix, catalog_managed):
    first = start_service()
    with httpx.Client(base_url=f"{first.url}/api/v1") as api:
        body = table_body(NAME, catalog_managed=catalog_managed)
        assert api.post("/tables", json=body).status_code == 201
        sent = proposal(add(), transaction_id="00000000-0000-4000-8000-000000000001")
        landed = api.post(f"/tables/{NAME}/commits", json=sent).json()
        assert landed["version"] == 1
    first.stop()
    first.join()

    second = start_service()
    with httpx.Client(base_url=f"{second.url}/api/v1") as api:
        assert httpx.get(f"{second.url}/readyz").status_code == 200
        head = api.get(f"/tables/{NAME}").json()
        assert (head["latest_version"], head["location"]) == (1, f"{s3_prefix}/main/air/flights")
        again = api.post(f"/tables/{NAME}/commits", json=sent).json()
        assert (again["version"], again["replayed"]) == (1, True)


class TestCommandLine:
    """`tidegate serve` on S3, its options from each source."""

    def test_from_the_environment_as_the_stores_own_tools_read_it(
        self, database_url, tmp_path, s3_server, s3_prefix
    ):
        with serving(
            "--data-dir",
            tmp_path,
            TIDEGATE_DATABASE_URL=database_url,
            TIDEGATE_WAREHOUSE=s3_prefix,
            AWS_ACCESS_KEY_ID=s3_server.access_key,
            AWS_SECRET_ACCESS_KEY=s3_server.secret_key,
            AWS_ENDPOINT_URL=s3_server.endpoint,
            AWS_REGION=s3_server.region,
            AWS_ALLOW_HTTP="true",
        ) as (_, printed):
            assert f"warehouse  {s3_prefix}" in printed
            assert s3_server.secret_key not in printed

    def test_what_is_wrong_is_said_in_a_line_that_names_the_setting(
        self, database_url, tmp_path, s3_server, s3_prefix
    ):
        options = {**s3_server.storage_options, "aws_secret_access_key": SECRET}
        given = [f"--storage-option={k}={v}" for k, v in options.items()]

        done = invoke(
            "serve",
            *("--port", "0", "--data-dir", tmp_path, "--warehouse", s3_prefix, *given),
            TIDEGATE_DATABASE_URL=database_url,
        )

        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert "403 SignatureDoesNotMatch" in line
        assert "aws_secret_access_key" in line
        assert SECRET not in done.stdout + done.stderr
