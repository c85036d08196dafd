"""Bounds as Spark's JSON has them, in which Delta for Spark writes statistics."""

import datetime as dt
import json
import re

import msgspec
import pytest

from tidegate_protocol.log.bounds import lower_bound, upper_bound
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.schema.data_types import DATE, TIMESTAMP

ZONE = "spark.sql.session.timeZone"
POLICY = "spark.sql.legacy.timeParserPolicy"
ZONES = (
    "UTC",
    "Europe/Stockholm",
    "Europe/London",
    "Africa/Monrovia",
    "America/Juneau",
    "Asia/Manila",
    "+05:31:30",
)
TIMES = (
    "0001-01-05 00:00:00",
    "1582-10-04 12:00:00.123456",
    "1582-10-05 12:00:00",
    "1582-10-14 12:00:00",
    "1840-01-01 00:00:00.000001",
    "1899-12-31 15:01:19",
    "1899-12-31 23:59:59.999999",
    "1900-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1972-01-06 00:00:00",
    "2024-07-01 00:00:00.123456",
    "9999-12-30 00:00:00",
)
SECONDS = re.compile(r"[+-]\d\d:\d\d:\d\d\"")
"""An offset that is not read."""
DAYS = ("-0043-03-15", "0001-01-01", "1582-10-04", "1582-10-05", "1582-10-14", "1600-01-01")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def bounds(data_type, text):
    raw = msgspec.Raw(json.dumps(json.loads(text)["t"]).encode())
    return lower_bound(data_type, raw), upper_bound(data_type, raw)


@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("zone", ZONES)
def test_an_instant_lies_within_its_text(session, zone, policy):
    session.conf.set(ZONE, zone)
    session.conf.set(POLICY, policy)
    values = ", ".join(f"(TIMESTAMP'{time}')" for time in TIMES)
    pairs = session.sql(
        f"SELECT unix_micros(t), to_json(named_struct('t', t)) FROM VALUES {values} AS v(t)"
    ).collect()
    for micros, text in pairs:
        value = EPOCH + dt.timedelta(microseconds=micros)
        low, high = bounds(TIMESTAMP, text)
        assert low is None or low <= value, text
        assert high is None or high >= value, text
        assert (high is None) == bool(SECONDS.search(text)), text
        assert (low is None) == (high is None or value.year <= 1582), text
    assert policy == "CORRECTED" or not any(SECONDS.search(text) for _, text in pairs)


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
def test_a_day_lies_within_its_text(session, day, policy):
    session.conf.set(POLICY, policy)
    written = f"to_json(named_struct('t', DATE'{day}'))"
    days, text = session.sql(f"SELECT unix_date(DATE'{day}'), {written}").first()
    low, high = bounds(DATE, text)
    assert low is None or (low - EPOCH.date()).days <= days
    assert high is None or (high - EPOCH.date()).days >= days
    assert (high is None) == (day < "0" and policy == "CORRECTED")


def test_a_row_is_read_and_stays_by_bounds_with_an_offset_of_today(session, create):
    """Manila was nearly a day behind until 1845; LEGACY writes the offset that it has today."""
    table = create("t timestamp, a int")
    session.conf.set(ZONE, "Asia/Manila")
    session.conf.set(POLICY, "LEGACY")
    table.append(session.sql("SELECT TIMESTAMP'1840-01-01 00:00:00' t, 1 a"))
    (bound,) = session.sql("SELECT to_json(named_struct('t', TIMESTAMP'1840-01-01'))").first()
    session.conf.set(POLICY, "CORRECTED")
    (file,) = table.scan().files
    said = json.loads(bound)
    assert said == {"t": "1840-01-01T00:00:00.000+08:00"}
    stats = {**json.loads(file.stats), "minValues": said, "maxValues": said}
    with table.transaction() as txn:
        changed = with_fields(file, {"stats": json.dumps(stats), "dataChange": False})
        txn.read_files([changed])
        txn.add([changed])
        txn.commit("COMPUTE STATS")
    assert table.read(session, "t = '1840-01-01 00:00:00'").count() == 1
    table.delete("t < '1839-12-31 12:00:00'", spark=session)
    assert table.read(session).count() == 1
