"""Predicates that are long, many, deep or slow to judge stop nobody's commits."""

import itertools
import json

import httpx
import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import attacked

GROWN_MIB = 200
"""A parsed predicate takes a hundred times its text while it is read; one is read at a time by
proposals, two by scans."""

OR = " or ".join(["month=0"] * 5_400)
"""As many terms as are taken."""
TOO_MANY = " or ".join(["month=0"] * 5_900)
IN = f"month in ({','.join(map(str, range(10_000)))})"
DEEP = "(" * 23 + "month=0" + ")" * 23
LIKE = " or ".join([f"carrier like '%_{'a' * 30}b%'"] * 1_200)
ACCEPTED = {
    "one long chain": [OR],
    "lists": [IN] * 2,
    "deep": [" or ".join([DEEP] * 320)],
    "many": [f"month={number}" for number in range(1_000)],
    "many short ones": ["1=1"] * 330,
    "patterns": [LIKE],
}


OVERDUE = 503
CUT_OFF = 0


@pytest.fixture(scope="module")
def deadline_s():
    return 3.0


def status_of(service, url, body):
    """The status of the answer, if it came to its end."""
    try:
        return service.client.post(url, json=body).status_code
    except (httpx.RemoteProtocolError, httpx.ReadError):
        return CUT_OFF


@pytest.fixture(scope="module")
def table(service):
    """A table of 1,000 partitions, whose carriers are what patterns find hardest."""
    url = service.create("main.other.predicates", partition_columns=["carrier"])
    adds = [
        add(f"{number}", partitionValues={"carrier": f"{'a' * 20}{number:04}"})
        for number in range(1_000)
    ]
    service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    return url


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("scan", "one long chain"),
        ("scan", "patterns"),
        ("scan", "many short ones"),
        ("conflict-check", "lists"),
        ("conflict-check", "deep"),
        ("commits", "many"),
    ],
)
def test_long_ones(service, table, kind, call):
    numbers = itertools.count()

    def attack(_):
        if call == "scan":
            body = {"predicates": ACCEPTED[kind]}
        else:
            adding = add(f"{call}/{kind[:4]}/{next(numbers)}", partitionValues={"carrier": "b"})
            body = proposal(adding, read_version=0, reads={"predicates": ACCEPTED[kind]})
        return status_of(service, f"{table}/{call}", body)

    with attacked(service, attack, at_once=4) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= {200, 201, 409, OVERDUE, CUT_OFF}, measured.answers


@pytest.mark.parametrize("column", ["month", "nothing"])
@pytest.mark.parametrize("call", ["commits", "scan"])
def test_many_of_some_hundred_characters(service, call, column):
    """Each another one, of commits to many tables, which share groups with others'; refused ones
    are read to their end, too."""
    name = f"main.other.{call}_{column}"
    urls = itertools.cycle([service.create(f"{name}_{number}") for number in range(16)])
    numbers = itertools.count(100)

    def attack(service):
        number = next(numbers)
        reads = {"predicates": [f"{column}={number}" + f" or -{column}=-{number}" * 40]}
        body = {"version": 0, **reads}
        if call == "commits":
            body = proposal(add(f"month=5/{number}"), read_version=0, reads=reads)
        return status_of(service, f"{next(urls)}/{call}", body)

    with attacked(service, attack, at_once=48) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= {200, 201, 422, OVERDUE, CUT_OFF}, measured.answers


def test_too_much_is_refused(service, table):
    for predicates in ([TOO_MANY], [OR] * 2, [IN] * 3):
        for call, body in (
            ("scan", {"predicates": predicates}),
            ("commits", proposal(add("c"), read_version=0, reads={"predicates": predicates})),
            ("conflict-check", proposal(read_version=0, reads={"predicates": predicates})),
        ):
            answer = service.client.post(f"{table}/{call}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "too-large"), call


def test_what_is_refused(service, table):
    body = json.dumps({"predicates": [TOO_MANY] * 20}).encode()

    def attack(_):
        headers = {"Content-Type": "application/json"}
        return service.client.post(f"{table}/scan", content=body, headers=headers).status_code

    with attacked(service, attack, at_once=4) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) == {413}
