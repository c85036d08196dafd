"""Digests of files (`core.ports.checkpoints.DIGEST_MODULUS`) as expressions on rows of `files`."""

from tidegate_service.core.ports.checkpoints import DIGEST_MODULUS

FILE_HASH = "hashtextextended(path, hashtextextended(dv_id, added_version))"


def digest_of(total: str) -> str:
    """The digest that a sum of hashes is, as a bigint."""
    return f"CAST(mod(coalesce({total}, 0), {DIGEST_MODULUS}) AS bigint)"
