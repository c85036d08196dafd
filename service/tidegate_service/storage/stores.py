"""Clients of object stores: from a root's URL and the storage options of the settings.

Endpoint, region and credentials come from the options, or from the environment as each store's
own tools read it (`AWS_*`, `GOOGLE_*`, `AZURE_*`), never from a request.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage.limits import DEFAULTS

PUT_BYTES_A_S = 16 * 1024 * 1024
"""The rate at which a PUT's bytes have time beyond `StorageLimits.put_s`."""
# Among the options and not as obstore's client options, which would hide `AWS_ALLOW_HTTP` and
# its like in the environment.
_CLIENT = {
    "connect_timeout": "2s",
    "timeout": f"{DEFAULTS.call_s:.0f}s",
    # Shorter than stores keep an idle connection: a write on one that they have just closed has
    # no answer, and costs another request to settle.
    "pool_idle_timeout": "10s",
    "user_agent": "tidegate",
}
_NEVER_AGAIN = {"max_retries": 0}
_AGAIN: dict[str, Any] = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=DEFAULTS.call_s),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1)},
}
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "abfss": ("azure_storage_", "azure_")}
_FIXED = {
    **dict.fromkeys(
        ("bucket", "bucket_name", "container", "container_name", "account_name", "account"),
        "the location's URL says it",
    ),
    **dict.fromkeys(
        ("conditional_put", "timeout", "connect_timeout", "pool_idle_timeout", "user_agent"),
        "what is promised of commits rests on it",
    ),
}
_ADDRESS_VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_ENDPOINT")
_ADDRESSES = ("endpoint", "endpoint_url", "endpoint_url_s3", "base_url", "proxy_url")
_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:_]+(?:/[!-~]*)?")
CREDENTIALS = {
    "s3": "aws_access_key_id and aws_secret_access_key",
    "gs": "google_service_account or google_service_account_key",
    "abfss": "azure_client_id, azure_client_secret and azure_tenant_id, or azure_account_key",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Two clients of one bucket. `once` never sends a request twice, for what must not be;
    `again` repeats what failed, within `StorageLimits.call_s`."""

    scheme: str
    bucket: str
    once: ObjectStore
    again: ObjectStore


def check_options(options: Mapping[str, str], urls: Iterable[str]) -> None:
    """Raise `StorageUnavailable` for an option that could not have an effect, or must not."""
    schemes = {urlsplit(url).scheme for url in urls} & _PREFIXES.keys()
    for key in options:
        owners = [scheme for scheme in _PREFIXES if key.startswith(_PREFIXES[scheme])]
        if not schemes & set(owners or _PREFIXES):
            raise StorageUnavailable(
                f"the storage option {excerpt(key)} is for "
                f"{f'{owners[0]}:// locations' if owners else 'object stores'}, and neither the "
                "warehouse nor an allowed location is one"
            )
        name = _bare(key)
        if name in _FIXED:
            raise StorageUnavailable(
                f"the storage option {excerpt(key)} cannot be set: {_FIXED[name]}"
            )
        # obstore would find out in the middle of a request, and not survive it.
        if name.endswith(_ADDRESSES) and not _URL.fullmatch(options[key]):
            raise StorageUnavailable(
                f"the storage option {excerpt(key)} is expected to be an http:// or https:// URL"
            )


def open_clients(url: str, options: Mapping[str, str]) -> Clients:
    """Connects nowhere yet. Raises `StorageUnavailable`, which never shows an option's value."""
    parts = urlsplit(url)
    for variable in _ADDRESS_VARIABLES:
        if not _URL.fullmatch(os.environ.get(variable) or "http://none"):
            raise StorageUnavailable(
                f"the variable {variable} is expected to be an http:// or https:// URL"
            )
    own = {
        key: value
        for key, value in options.items()
        if key.startswith(_PREFIXES[parts.scheme])
        or not any(key.startswith(prefixes) for prefixes in _PREFIXES.values())
    }
    bucket, _, host = parts.netloc.partition("@")
    try:
        once, again = (
            _open(parts.scheme, bucket, host, own, retrying) for retrying in (_NEVER_AGAIN, _AGAIN)
        )
    except UnknownConfigurationKeyError as error:
        known = _unknown_key(error, own)
        raise StorageUnavailable(
            f"the storage option {excerpt(known)} is not one of {parts.scheme}:// locations"
        ) from None
    except (BaseError, ValueError) as error:
        raise StorageUnavailable(
            f"no client can be made for {excerpt(url)} with the storage options and environment "
            f"given: {_shown(error, own)}"
        ) from None
    return Clients(scheme=parts.scheme, bucket=bucket, once=once, again=again)


def _open(
    scheme: str, bucket: str, host: str, options: dict[str, str], retrying: dict[str, Any]
) -> ObjectStore:
    retry: Any = retrying
    config: Any = {**options, **_CLIENT}
    if scheme == "s3":
        # Named, so that no environment switches it off: put-if-absent rests on it.
        config["aws_conditional_put"] = "etag"
        return S3Store(bucket, config=config, retry_config=retry)
    if scheme == "gs":
        return GCSStore(bucket, config=config, retry_config=retry)
    # The URL names the account, whatever the environment says.
    config["azure_storage_account_name"] = host.partition(".")[0]
    return AzureStore(bucket, config=config, retry_config=retry)


def _bare(key: str) -> str:
    for prefixes in _PREFIXES.values():
        for prefix in prefixes:
            if key.startswith(prefix):
                return key.removeprefix(prefix)
    return key


def _unknown_key(error: Exception, options: Mapping[str, str]) -> str:
    text = str(error)
    return next((key for key in options if f"'{key}'" in text), "given")


def _shown(error: Exception, options: Mapping[str, str]) -> str:
    """The first line of an error, without the value of any option."""
    line = str(error).partition("\n")[0]
    for value in sorted(options.values(), key=len, reverse=True):
        if value:
            line = line.replace(value, "***")
    return excerpt(line)
