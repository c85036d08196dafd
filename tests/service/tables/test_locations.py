"""Table names and locations: what is allowed, and how a refusal reads."""

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.locations import LocationPolicy, canonical_url
from tidegate_service.core.access.names import check_name
from tidegate_service.core.errors import Refused

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
        "file:///lake/.tidegate-probe",
        "file:///lake/.Tidegate-Probe/put-if-absent",
        "file:///etc/passwd",
        "FILE:///etc/x",
        "http://localhost/lake",
        "az://container/lake",
        "s3n://bucket/lake",
        " file:///lake/t",
        "file://[::1/lake",
        "javascript:alert(1)",
    ],
)
def test_other_locations_are_refused(location):
    with pytest.raises(Refused, match="is not allowed") as refusal:
        POLICY.canonical(location)
    assert refusal.value.code is Code.INVALID_LOCATION


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket/a", "s3://bucket/a"),
        ("S3A://bucket/A", "s3://bucket/A"),
        ("s3://my.bucket-1/a b/é", "s3://my.bucket-1/a b/é"),
        ("s3://bucket/100%", "s3://bucket/100%"),
        ("gs://my_bucket.com/a", "gs://my_bucket.com/a"),
        (
            "abfss://files-1@account1.dfs.core.windows.net/a/",
            "abfss://files-1@account1.dfs.core.windows.net/a",
        ),
        ("s3://bucket/" + "k" * 799, "s3://bucket/" + "k" * 799),
    ],
)
def test_places_in_object_stores_have_one_form(given, stored):
    assert canonical_url(given) == stored
    assert canonical_url(stored) == stored


@pytest.mark.parametrize(
    "location",
    [
        "s3:bucket/a",
        "s3:/bucket/a",
        "s3:///a",
        "s3://b/a",
        "s3://Bucket/a",
        "s3://bucket_1/a",
        "s3://bucket-/a",
        "s3://-bucket/a",
        "s3://bu..cket/a",
        "s3://bu.-cket/a",
        "s3://" + "b" * 64 + "/a",
        "s3://192.168.5.4/a",
        "s3://bucket:443/a",
        "s3://key:secret@bucket/a",
        "s3://bucket@host/a",
        "s3://express--use1-az4--x-s3/a",
        "s3://bucket//a",
        "s3://bucket/a//b",
        "s3://bucket/a/../b",
        "s3://bucket/..",
        "s3://bucket/./a",
        "s3://bucket/%2e%2e/a",
        "s3://bucket/a%2Fb",
        "s3://bucket/a\n",
        "s3://bucket/a?versionId=1",
        "s3://bucket/a#b",
        "s3://bucket\\a",
        "s3://bucket/_delta_log",
        "s3://bucket/t/_delta_log/x",
        "s3://bucket/" + "k" * 800,
        "s3://bucket/" + "é" * 400,
        "gs://b/a",
        "gs://Bucket/a",
        "gs://bu..cket/a",
        "gs://10.0.0.1/a",
        "abfss://container/a",
        "abfss://container@account/a",
        "abfss://container@account.blob.core.windows.net/a",
        "abfss://container@account.dfs.core.windows.net.evil.example/a",
        "abfss://container@Account.dfs.core.windows.net/a",
        "abfss://con--tainer@account.dfs.core.windows.net/a",
        "abfss://co@account.dfs.core.windows.net/a",
        "abfss://container@account.dfs.core.windows.net:443/a",
        "wasbs://container@account.blob.core.windows.net/a",
        "https://bucket.s3.amazonaws.com/a",
    ],
)
def test_what_could_be_another_place_or_none_is_refused(location):
    with pytest.raises(Refused, match="is not allowed") as refusal:
        canonical_url(location)
    assert refusal.value.code is Code.INVALID_LOCATION


def test_a_bucket_is_no_prefix_of_another():
    policy = LocationPolicy(warehouse="s3://lake", prefixes=("gs://lake/a",))
    assert policy.canonical("s3a://lake/t") == "s3://lake/t"
    assert policy.default("A.b.C") == "s3://lake/a/b/c"
    for location in ("s3://lake", "s3://lakes/t", "gs://lake/t", "gs://lake/ab/t"):
        with pytest.raises(Refused):
            policy.canonical(location)


def test_a_canonical_url_is_a_fixed_point():
    once = canonical_url("file:///lake/t//")
    assert once == "file:///lake/t"
    assert canonical_url(once) == once


SCOPES = LocationPolicy(
    warehouse="s3://lake/tables", prefixes=("s3://lake", "s3://lake/tables/open", "gs://lake")
)


@pytest.mark.parametrize(
    ("location", "scope"),
    [
        ("s3://lake/tables/main", "main"),
        ("s3://lake/tables/main/air", "main.air"),
        ("s3://lake/tables/main/air/flights", "main.air.flights"),
        ("s3://lake/tables/main/air/flights/x", "main.air.flights"),
        ("s3://lake/tables/MAIN/Air/x", "main.air.x"),
        ("s3://lake/tables/main/a b/x", "main"),
        ("s3://lake/tables/main/month=5/x", "main"),
        ("s3://lake/tables/ma\u017fter/x", "*"),
        ("s3://lake/tables/opened/x", "opened.x"),
        ("s3://lake/tables", "*"),
        ("s3://lake", "*"),
        ("s3://lake/tables/open", None),
        ("s3://lake/tables/open/x", None),
        ("s3://lake/tables/Open/x", "open.x"),
        ("s3://lake/tables2/main", None),
        # Object stores tell cases apart.
        ("s3://lake/Tables/main/air", None),
        ("gs://lake/tables/main", None),
    ],
)
def test_a_folder_of_the_warehouse_is_a_scope_s(location, scope):
    assert SCOPES.scope_of(location) == scope


def test_a_bucket_as_the_warehouse_is_divided_in_the_same_way():
    policy = LocationPolicy(warehouse="s3://lake")
    assert policy.scope_of("s3://lake/main/air") == "main.air"
    assert policy.scope_of("s3://lake") == "*"


def test_a_local_warehouse_is_found_in_any_case():
    policy = LocationPolicy(warehouse="file:///data/Lake", prefixes=("file:///data",))
    assert policy.scope_of("file:///DATA/lake/main/x") == "main.x"
    assert policy.scope_of("file:///data/LAKE/Main/AIR/") == "main.air"
    assert policy.scope_of("file:///data/LAKE") == "*"
    assert policy.scope_of("file:///data/other") is None


def test_a_local_folder_that_is_no_name_is_no_other_name_s():
    """Though by Unicode's folding it is one."""
    policy = LocationPolicy(warehouse="file:///data/\u00c4/lake", prefixes=("file:///data",))
    assert policy.scope_of("file:///data/\u00c4/lake/main/\u00df/t") == "main"
    assert policy.scope_of("file:///data/\u00c4/lake/ma\u017fter/x") == "*"
    # The warehouse is found by it all the same: a file system may take it for that.
    assert policy.scope_of("file:///data/\u00e4/Lake/main/x") == "main.x"


def test_a_bucket_is_one_store_and_a_local_folder_is_one():
    policy = LocationPolicy(
        warehouse="file:///lake",
        prefixes=("file:///lake/a", "file:///mnt/far", "s3://b/x", "s3://b/y", "gs://b/x"),
    )
    stores = {
        "file:///lake/t": "file:///lake",
        "file:///lake/a/t": "file:///lake/a",
        "file:///mnt/far/t": "file:///mnt/far",
        "s3://b/x/t": "s3://b",
        "s3://b/y/t": "s3://b",
        "gs://b/x/t": "gs://b",
    }
    assert {location: policy.store_of(location) for location in stores} == stores
