"""What whoever runs the service can do about a store's failure: notes beside the errors.

A note never reaches a client. It names settings, never their values.
"""

from typing import TypeVar

from tidegate_service.core.errors import ServiceError
from tidegate_service.storage.remote.failures import Failure
from tidegate_service.storage.stores import CREDENTIALS, Clients

E = TypeVar("E", bound=ServiceError)

_ENDPOINTS = {"s3": "aws_endpoint", "gs": "google_base_url", "abfss": "azure_endpoint"}
_ENVIRONMENT = {"s3": "AWS_*", "gs": "GOOGLE_*", "abfss": "AZURE_*"}


def advised(error: E, found: Failure, clients: Clients) -> E:
    """The error with a note, where the failure has a usual cause."""
    note = _advice(found, clients)
    if note is not None:
        error.add_note(note)
    return error


def _advice(found: Failure, clients: Clients) -> str | None:
    place = f"{clients.scheme}://{clients.bucket}"
    environment = f"or {_ENVIRONMENT[clients.scheme]} in the environment"
    endpoint = _ENDPOINTS[clients.scheme]
    if found.status in (401, 403):
        return (
            f"{place} does not take the credentials, or they do not allow this: look at the "
            f"storage options {CREDENTIALS[clients.scheme]} ({environment})"
        )
    if found.no_bucket or (found.status == 404 and found.code is None):
        return (
            f"there is no bucket {clients.bucket} at this endpoint: look at --warehouse and "
            f"--allowed-locations, and at the storage option {endpoint} ({environment})"
        )
    if found.redirected:
        return (
            f"{place} is in another region: look at the storage option aws_region ({environment})"
        )
    if "Builder" in found.kinds:
        return (
            f"an http:// address is taken only with the storage option allow_http=true; else look "
            f"at the storage option {endpoint} ({environment})"
        )
    if {"Connect", "Timeout"} & set(found.kinds):
        return (
            f"look at the storage option {endpoint} ({environment}) and the network; without "
            f"{CREDENTIALS[clients.scheme]}, credentials are asked for at the cloud's own address, "
            "which is there on its machines only"
        )
    return None
