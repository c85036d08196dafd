"""What the client makes of a vacuum's lines."""

import pytest

import tidegate
from tidegate.wire.exchange import Response
from tidegate.wire.vacuum import vacuumed

HEAD = b'{"table":"main.air.flights"}\n'


def answer(*lines: bytes) -> Response:
    return Response(status=200, body=HEAD + b"\n".join(lines))


def test_the_paths_of_all_lines_are_together():
    done = vacuumed(
        answer(
            b'{"stage":"logs","logs":7}',
            b'{"stage":"listing","logs":7,"warnings":["one"]}',
            b'{"stage":"files","found":1,"paths":["a"]}',
            b'{"stage":"files","found":2,"paths":["b"]}',
            b'{"stage":"ended","listed":9,"found":2,"found_bytes":7}',
        )
    )
    assert (done.paths, done.warnings) == (("a", "b"), ("one",))
    assert (done.listed, done.found, done.found_bytes, done.deleted) == (9, 2, 7, 0)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (b"storage-unavailable", tidegate.ServiceUnavailable),
        (b"table-quarantined", tidegate.TableQuarantined),
        (b"of-a-newer-service", tidegate.ServiceUnavailable),
    ],
)
def test_one_that_failed_raises_why_and_how_far_it_was(code, kind):
    line = b'{"stage":"failed","found":3,"deleted":2,"code":"%b","detail":"no right"}' % code
    with pytest.raises(kind, match="no right; 2 of 3 files were deleted before") as failed:
        vacuumed(answer(line))
    assert failed.value.code == code.decode()


@pytest.mark.parametrize("body", [b"", HEAD, b"x\ny", HEAD + b'{"stage":"listing"}'])
def test_what_has_no_end_is_not_believed(body):
    with pytest.raises(tidegate.UnexpectedAnswer):
        vacuumed(Response(status=200, body=body))
