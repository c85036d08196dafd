"""Settings that are lists: of texts in the file, and one text with commas elsewhere."""

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from tidegate_service.core.access.proxies import network_of

_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+\Z|\[[0-9A-Fa-f:.]+\]\Z")


def _separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _host_names(hosts: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [host for host in hosts if not _HOST_NAME.match(host)]:
        raise ValueError(f"expected names or addresses without a port, found {wrong[0]!r}")
    return tuple(host.lower() for host in hosts)


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(network_of(text)) for text in texts)


Separated: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_separated)]
HostNames: TypeAlias = Annotated[Separated, AfterValidator(_host_names)]
Networks: TypeAlias = Annotated[Separated, AfterValidator(_networks)]
"""Addresses are networks of one."""
