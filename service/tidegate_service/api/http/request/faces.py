"""Which of the service's APIs a request is for: errors look as that API's clients read them."""

import re
from enum import Enum

UNITY_PREFIX = "/api/2.1/unity-catalog"
"""Of Unity Catalog's API; the prefix is part of what its clients know."""
DELTA_PREFIX = f"{UNITY_PREFIX}/delta/"
_COMMIT = re.compile(rf"{re.escape(DELTA_PREFIX)}v1/catalogs/[^/]+/schemas/[^/]+/tables/[^/]+\Z")


class Face(Enum):
    """The service's own API, the classic part of Unity Catalog's, its part for Delta, and in that
    the call that commits: to it a refusal for good is always a 400."""

    OWN = "own"
    CLASSIC = "classic"
    DELTA = "delta"
    COMMIT = "commit"


def face_of(method: str, path: str) -> Face:
    """By the method and the decoded path."""
    if not path.startswith(UNITY_PREFIX):
        return Face.OWN
    if not path.startswith(DELTA_PREFIX):
        return Face.CLASSIC
    return Face.COMMIT if method == "POST" and _COMMIT.match(path) else Face.DELTA
