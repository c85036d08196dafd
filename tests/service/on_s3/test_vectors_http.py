"""A sample of the conflict vectors over HTTP, with the warehouse on S3."""

import httpx
import pytest

from tests import vectors
from tests.service.api.routes.test_vectors_http import ALL, HttpDriver
from tests.vectors import Kind, Vector

SAMPLE = ALL[::12]


@pytest.mark.skipif(not ALL, reason=vectors.ABSENT)
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("vector", SAMPLE, ids=lambda vector: f"{vector.theme}/{vector.name}")
def test_vector(vector: Vector, kind: Kind, shared_api: httpx.Client):
    reason = vectors.skip_reason(vector, kind)
    if reason is not None:
        pytest.skip(reason)
    assert vectors.run(vector, kind, HttpDriver(shared_api)) == []
