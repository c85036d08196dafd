"""Compressed bodies: taken where they are whole gzip, and never inflated beyond their bounds."""

import gzip
import json
import random
import zlib
from collections.abc import Iterator

import httpx
import pytest

from tests.builders.flights import add, ndjson, proposal
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tidegate_service.api.bodies.encodings import FREE_BYTES, MAX_RATIO, Gunzip
from tidegate_service.core.errors import Refused

MIB = 1024 * 1024
GZIP = {"Content-Encoding": "gzip"}


def body(**fields: object) -> bytes:
    return json.dumps(proposal(add(), **fields)).encode()


@pytest.fixture
def call(shared_api, flights):
    """Send a body as gzip to the conflict check, which reads it as a proposal is read."""

    def send(content: bytes | Iterator[bytes], **headers: str):
        return shared_api.post(
            f"/tables/{flights}/conflict-check",
            content=content,
            headers={**JSON_TYPE, **GZIP, **headers},
        )

    return send


class TestTaken:
    @pytest.mark.parametrize("level", [0, 1, 9])
    def test_it_is_read_as_what_it_was(self, shared_api, flights, level):
        answer = shared_api.post(
            f"/tables/{flights}/commits",
            content=gzip.compress(body(), level),
            headers=JSON_TYPE | GZIP,
        )
        assert (answer.status_code, answer.json()["version"]) == (201, 1)

    def test_so_is_ndjson(self, shared_api, flights):
        answer = shared_api.post(
            f"/tables/{flights}/commits",
            content=gzip.compress(ndjson(add("month=5/a"), add("month=5/b"))),
            headers=NDJSON_TYPE | GZIP,
        )
        assert answer.json()["metrics"]["num_added_files"] == 2

    def test_sent_plainly_again_it_is_the_same_body(self, shared_api, flights):
        sent = body(transaction_id="t-1")
        path = f"/tables/{flights}/commits"
        first = shared_api.post(path, content=gzip.compress(sent), headers=JSON_TYPE | GZIP)
        again = shared_api.post(path, content=sent, headers=JSON_TYPE)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json()["replayed"]

    def test_it_may_come_in_pieces(self, call):
        packed = gzip.compress(body())
        assert call(packed[at : at + 1] for at in range(len(packed))).status_code == 200

    def test_it_may_have_several_members(self, call):
        whole = body()
        assert call(gzip.compress(whole[:20]) + gzip.compress(whole[20:])).status_code == 200

    @pytest.mark.parametrize("name", ["GZIP", "x-gzip", "gZip"])
    def test_by_each_of_its_names(self, call, name):
        assert call(gzip.compress(body()), **{"Content-Encoding": name}).status_code == 200

    def test_actions_as_they_come_stay_below_the_ratio(self, call):
        actions = [
            add(f"month=5/part-{random.getrandbits(128):032x}.parquet") for _ in range(20_000)
        ]
        plain = json.dumps(proposal(*actions)).encode()
        packed = gzip.compress(plain, 9)
        assert len(plain) > 2 * FREE_BYTES
        assert len(plain) < MAX_RATIO / 3 * len(packed)
        assert call(packed).status_code == 200


class TestNotWhole:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{}",
            body(),
            gzip.compress(body())[:-1],
            gzip.compress(body())[:-8],
            gzip.compress(body())[:20],
            gzip.compress(body())[:1],
            gzip.compress(body())[10:],
            gzip.compress(body()) + b"x",
            gzip.compress(body()) + b"\0" * 512,
            gzip.compress(body()) + gzip.compress(b" ")[:-1],
            gzip.compress(body())[:-8] + b"\0" * 8,
            gzip.compress(body())[:-4] + b"\xff" * 4,
            b"\x1f\x8b\x09" + gzip.compress(body())[3:],
            zlib.compress(body()),
            b"\x28\xb5\x2f\xfd" + body(),
        ],
        ids=range(16),
    )
    def test_it_says_nothing_of_the_transaction(self, call, content):
        # No 422: an earlier copy of the same transaction may have landed.
        answer = call(content)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed-http")
        assert "gzip" in answer.json()["detail"]

    @pytest.mark.parametrize(
        "name", ["br", "deflate", "zstd", "gzip, gzip", "gzip,br", "x", "g\x85"]
    )
    def test_other_encodings_are_not_taken(self, call, name):
        answer = call(gzip.compress(body()), **{"Content-Encoding": name.encode("latin-1")})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")

    def test_nor_two_headers(self, shared_api, flights):
        answer = shared_api.post(
            f"/tables/{flights}/conflict-check",
            content=gzip.compress(body()),
            headers=[
                *JSON_TYPE.items(),
                ("Content-Encoding", "gzip"),
                ("Content-Encoding", "gzip"),
            ],
        )
        assert answer.status_code == 415

    def test_what_it_inflates_to_is_read_as_strictly(self, call):
        answer = call(gzip.compress(b'{"operation":"A","operation":"B","actions":[]}'))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


class TestBombs:
    def test_a_few_kilobytes_do_not_become_megabytes(self, call):
        bomb = gzip.compress(b" " * (60 * MIB))
        assert len(bomb) < 64 * 1024
        answer = call(bomb)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert "100 times" in answer.json()["detail"]

    def test_nor_in_many_members(self, call):
        assert call(gzip.compress(b" " * MIB) * 50).status_code == 413

    @pytest.mark.parametrize("member", [b"", b"x" * 100], ids=["empty", "short"])
    def test_nor_in_members_that_hold_next_to_nothing(self, call, member):
        members = gzip.compress(member) * (2 * MIB // len(gzip.compress(member)))
        answer = call(members)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert "members of gzip" in answer.json()["detail"]

    def test_members_of_a_kilobyte_each_are_taken(self):
        text = random.Random(7).randbytes(100 * 1024)
        packed = b"".join(
            gzip.compress(text[start : start + 1024]) for start in range(0, len(text), 1024)
        )
        gunzip = Gunzip(max_bytes=MIB)
        assert b"".join(gunzip.pieces(packed)) == text
        gunzip.end()

    def test_nor_in_one_inside_another(self, call):
        assert call(gzip.compress(gzip.compress(b" " * (60 * MIB)))).status_code == 422

    def test_what_compresses_little_is_bounded_too(self, start_service):
        service = start_service(max_body_bytes=100_000)
        noise = random.Random(7).randbytes(40_000).hex().encode()
        packed = gzip.compress(noise + noise)
        assert len(packed) < 100_000 < len(noise + noise)
        answer = httpx.post(
            f"{service.url}/api/v1/tables", content=packed, headers=JSON_TYPE | GZIP
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert "100000 bytes" in answer.json()["detail"]

    def test_no_more_is_made_than_a_piece_beyond_the_bound(self):
        packed = gzip.compress(b" " * (60 * MIB))
        made: list[int] = []
        with pytest.raises(Refused):
            made.extend(len(piece) for piece in Gunzip(max_bytes=2 * MIB).pieces(packed))
        assert sum(made) <= 2 * MIB
