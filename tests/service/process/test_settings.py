"""Settings: where they come from, what is refused, what is shown."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tidegate_service.settings import (
    InvalidSettings,
    Settings,
    env_name,
    load,
    unknown_variables,
)

SECRET = "correct-horse"
STORAGE_OPTIONS = {"aws_region": "eu-north-1", "aws_secret_access_key": f"{SECRET}="}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for field in Settings.model_fields:
        monkeypatch.delenv(env_name(field), raising=False)


def file_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tidegate.toml"
    path.write_text(text)
    return path


class TestSources:
    def test_without_any_the_defaults_hold(self):
        settings = load()
        assert (settings.host, settings.port) == ("127.0.0.1", 8720)
        assert settings.database_url is None
        assert settings.data_dir == Path.cwd() / "tidegate-data"
        assert settings.locations().warehouse == f"file://{Path.cwd()}/tidegate-data/warehouse"

    def test_a_flag_wins_over_the_environment_which_wins_over_the_file(self, tmp_path, monkeypatch):
        config = file_of(tmp_path, "port = 1\nmax_body_bytes = 2048\nlog_level = 'error'\n")
        monkeypatch.setenv("TIDEGATE_PORT", "2")
        monkeypatch.setenv("TIDEGATE_MAX_BODY_BYTES", "4096")

        settings = load({"port": 3}, config=config)

        assert (settings.port, settings.max_body_bytes) == (3, 4096)
        assert settings.log_level == "error"

    def test_an_empty_variable_is_none(self, monkeypatch):
        monkeypatch.setenv("TIDEGATE_DATABASE_URL", "")
        assert load().database_url is None

    def test_lists_are_lists_in_the_file_and_separated_elsewhere(self, tmp_path, monkeypatch):
        expected = ("file:///a", "file:///b")
        config = file_of(tmp_path, 'allowed_locations = ["file:///a", "file:///b/"]')
        assert load(config=config).allowed_locations == expected
        monkeypatch.setenv("TIDEGATE_ALLOWED_LOCATIONS", "file:///a, file:///b")
        assert load().allowed_locations == expected

    def test_they_are_frozen(self):
        with pytest.raises(ValidationError):
            load().port = 1

    def test_misspelt_variables_are_found_and_the_clients_own_are_not(self):
        found = unknown_variables(
            {"TIDEGATE_PROT": "1", "TIDEGATE_PORT": "1", "TIDEGATE_URL": "x", "HOME": "/"}
        )
        assert found == ["TIDEGATE_PROT"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ({"host": "0.0.0.0"}, "--host .from the command line.: expected a loopback address"),
            ({"host": "::"}, "loopback"),
            ({"host": "192.168.1.4"}, "loopback"),
            ({"host": "example.com"}, "no authentication"),
            ({"host": "0.0.0.0", "auth": "none"}, "refuses to listen where others could reach it"),
            ({"auth": "basic"}, "'none' or 'tokens'"),
            ({"auth": "basic", "host": "0.0.0.0"}, "no authentication"),
            ({"allowed_hosts": "a,b:80"}, "without a port, found 'b:80'"),
            ({"allowed_hosts": "https://a"}, "--allowed-hosts"),
            ({"trusted_proxies": "10.0.0.1/8"}, "--trusted-proxies .*has host bits set"),
            ({"trusted_proxies": "10.0.0.1,proxy"}, "'proxy' does not appear to be an IPv4 or"),
            ({"trusted_proxies": "10.0.0.1:80"}, "'10.0.0.1:80' does not appear"),
            ({"trusted_proxies": "*"}, "--trusted-proxies"),
            ({"trusted_proxies": "::ffff:10.0.0.0/104"}, "is one of IPv4"),
            ({"trusted_proxies": (10,)}, "--trusted-proxies .*valid string"),
            ({"max_requests_per_principal": 0}, "--max-requests-per-principal"),
            ({"port": 65536}, r"--port .*found 65536"),
            ({"port": -1}, "--port"),
            ({"deadline_seconds": 0}, "--deadline-seconds"),
            ({"max_body_bytes": 1}, "--max-body-bytes"),
            ({"commits_to_compact": 1}, "--commits-to-compact .*one commit is a file already"),
            ({"commits_to_compact": 1001}, "--commits-to-compact"),
            ({"log_level": "loud"}, "'debug', 'info'"),
            ({"warehouse": "ftp://bucket/x"}, "--warehouse .*scheme"),
            ({"warehouse": "/srv/lake"}, "--warehouse"),
            ({"warehouse": "file:///a/../b"}, r"'\.\.'"),
            ({"allowed_locations": "file:///a,az://b/c"}, "--allowed-locations .*scheme"),
            ({"database_url": "mysql://h/d"}, "--database-url .*expected postgresql://"),
            ({"database_url": "postgresql://h:port/d"}, "--database-url"),
            ({"data_dir": Path("/tmp/a%20b")}, "cannot hold the warehouse"),
        ],
    )
    def test_a_wrong_value_is_named_with_its_source(self, flags, message):
        with pytest.raises(InvalidSettings, match=message):
            load(flags)

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
    def test_loopback_is_taken(self, host):
        assert load({"host": host}).host == host

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "lake.example"])
    def test_with_tokens_the_rest_of_the_world_is_taken_too(self, host):
        assert load({"host": host, "auth": "tokens"}).host == host

    def test_hosts_are_names_in_lower_case(self):
        found = load({"allowed_hosts": "Lake.Example, 10.0.0.7,[::1]"}).allowed_hosts
        assert found == ("lake.example", "10.0.0.7", "[::1]")

    def test_proxies_are_networks(self, tmp_path):
        expected = ("10.0.0.7/32", "172.16.0.0/12", "fd00::/8")
        assert (
            load({"trusted_proxies": "10.0.0.7, 172.16.0.0/12,FD00:0::/8"}).trusted_proxies
            == expected
        )
        config = file_of(tmp_path, f"trusted_proxies = {list(expected)}")
        assert load(config=config).trusted_proxies == expected
        assert load().trusted_proxies == ()

    def test_every_wrong_setting_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TIDEGATE_PORT", "abc")
        config = file_of(tmp_path, "prot = 1\nlog_level = 'loud'")
        with pytest.raises(InvalidSettings) as caught:
            load({"host": "0.0.0.0"}, config=config)
        lines = str(caught.value).splitlines()
        assert len(lines) == 4
        assert any(line.startswith("TIDEGATE_PORT (from the environment)") for line in lines)
        assert any(line.startswith(f"log_level (from the file {config})") for line in lines)
        assert any(line.startswith(f"prot (from the file {config}) is not a") for line in lines)

    @pytest.mark.parametrize("text", ["port = [", "port", "\x00"])
    def test_a_file_that_is_no_toml(self, tmp_path, text):
        with pytest.raises(InvalidSettings, match="cannot be read"):
            load(config=file_of(tmp_path, text))

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(InvalidSettings, match="does not exist"):
            load(config=tmp_path / "none.toml")


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            (f"postgresql://u:{SECRET}@h:5/d?sslmode=require", "postgresql://u:***@h:5/d"),
            (f"postgresql://u:{SECRET}@/d?host=/run/pg", "postgresql://u:***@/d"),
            ("postgresql://u@h/d", "postgresql://u@h/d"),
            ("postgresql://h/d", "postgresql://h/d"),
            (f"postgresql://h/d?password={SECRET}", "postgresql://h/d"),
        ],
    )
    def test_the_password_is_never_shown(self, url, shown):
        settings = load({"database_url": url})
        assert settings.masked_database_url() == shown
        assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()
        assert settings.database_url is not None
        assert settings.database_url.get_secret_value() == url

    def test_nor_in_the_refusal_of_a_bad_url(self):
        with pytest.raises(InvalidSettings) as caught:
            load({"database_url": f"mysql://u:{SECRET}@h/d"})
        assert SECRET not in str(caught.value)


class TestStorageOptions:
    @pytest.mark.parametrize(
        "value",
        [
            f"aws_region=eu-north-1, AWS_SECRET_ACCESS_KEY={SECRET}=",
            f'{{"aws_region": "eu-north-1", "aws_secret_access_key": "{SECRET}="}}',
        ],
    )
    def test_the_variable_has_pairs_or_json(self, monkeypatch, value):
        monkeypatch.setenv("TIDEGATE_STORAGE_OPTIONS", value)
        assert load().store_options() == STORAGE_OPTIONS

    def test_the_file_has_a_table(self, tmp_path):
        text = f"[storage_options]\naws_region = 'eu-north-1'\naws_secret_access_key = '{SECRET}='"
        assert load(config=file_of(tmp_path, text)).store_options() == STORAGE_OPTIONS
        text = "[storage_options]\nallow_http = true"
        assert load(config=file_of(tmp_path, text)).store_options() == {"allow_http": "true"}

    def test_the_flag_is_repeated(self):
        pairs = [f"{key}={value}" for key, value in STORAGE_OPTIONS.items()]
        assert load({"storage_options": pairs}).store_options() == STORAGE_OPTIONS

    def test_values_are_never_shown(self):
        settings = load({"storage_options": STORAGE_OPTIONS})
        assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()

    @pytest.mark.parametrize(
        "value",
        [
            [SECRET],
            [f"a b={SECRET}"],
            [f"a={SECRET}", f"A={SECRET}"],
            f"{{{SECRET}",
            f'{{"a": ["{SECRET}"]}}',
            {"a": 1, "b": SECRET},
            17,
        ],
    )
    def test_nor_in_the_refusal_of_bad_ones(self, value):
        with pytest.raises(InvalidSettings, match="--storage-option") as caught:
            load({"storage_options": value})
        assert SECRET not in str(caught.value)
