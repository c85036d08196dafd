"""Table names and locations: what is allowed, and how a refusal reads."""

import pytest

from tidegate_protocol.problems import Code
from tidegate_service.core.errors import Refused
from tidegate_service.core.locations import LocationPolicy, canonical_url
from tidegate_service.core.names import check_name

POLICY = LocationPolicy(warehouse="file:///data/warehouse", prefixes=("file:///lake",))


@pytest.mark.parametrize(
    "name", ["main.air.flights", "Main.AIR.Flights_2", "a.b.c", "1.2.3", "c-1.s-2.t-3"]
)
def test_names_of_three_plain_parts_are_allowed(name):
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "flights",
        "air.flights",
        "a.b.c.d",
        "a..c",
        ".b.c",
        "a.b.",
        "a.b.c ",
        "a.b.c\n",
        "a.b.-c",
        "a.b.é",
        "a.b.c/d",
        "a.b.c;drop",
        "../b.c.d",
        "a.b." + "c" * 252,
    ],
)
def test_other_names_are_refused(name):
    with pytest.raises(Refused, match=r"catalog\.schema\.table") as refusal:
        check_name(name)
    assert refusal.value.code is Code.INVALID_NAME


def test_the_default_location_is_below_the_warehouse_in_lower_case():
    assert POLICY.default("Main.air.Flights") == "file:///data/warehouse/main/air/flights"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("file:///lake/t", "file:///lake/t"),
        ("file:///lake/t/", "file:///lake/t"),
        # Hadoop and Spark write file URLs without an authority this way.
        ("file:/lake/t", "file:///lake/t"),
        ("file:///lake/a b/é", "file:///lake/a b/é"),
        ("file:///data/warehouse/x", "file:///data/warehouse/x"),
    ],
)
def test_locations_inside_the_prefixes_are_stored_canonically(given, stored):
    assert POLICY.canonical(given) == stored


@pytest.mark.parametrize(
    "location",
    [
        "",
        "/lake/t",
        "lake/t",
        "file://lake/t",
        "file://host/lake/t",
        "file:///",
        "file:///lake",
        "file:///lakes/t",
        "file:///lake/../etc",
        "file:///lake/./t",
        "file:///lake//t",
        "file:///lake/%2e%2e/etc",
        "file:///lake/a%2Fb",
        "file:///lake/t\x00",
        "file:///lake/t\n",
        "file:///lake/t\x85",
        "file:///lake\\t",
        "file:///lake/t?x=1",
        "file:///lake/t#x",
        "file:///lake/t/_delta_log",
        "file:///lake/t/_delta_log/x",
        "file:///etc/passwd",
        "FILE:///etc/x",
        "http://localhost/lake",
        "s3://bucket/lake",
        "file://[::1/lake",
        "javascript:alert(1)",
    ],
)
def test_other_locations_are_refused(location):
    with pytest.raises(Refused, match="is not allowed") as refusal:
        POLICY.canonical(location)
    assert refusal.value.code is Code.INVALID_LOCATION


def test_a_canonical_url_is_a_fixed_point():
    once = canonical_url("file:///lake/t//")
    assert once == "file:///lake/t"
    assert canonical_url(once) == once
