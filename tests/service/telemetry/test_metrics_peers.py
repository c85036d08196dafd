"""The metrics of several processes in one text."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families

from tidegate_service.telemetry.peers import Peers, text_of

pytestmark = pytest.mark.anyio


def counted(value: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("done", "What was done.", ("kind",), registry=registry).labels("a b").inc(value)
    Histogram("took", "How long it took.", buckets=(1, 2), registry=registry).observe(value)
    return registry


async def test_each_metric_stands_once_with_the_samples_of_all(tmp_path):
    one, two = (Peers(name=name, folder=tmp_path) for name in ("1", "2"))
    own = text_of(one.labelled(counted(3)))
    async with one.shown(own), two.shown(text_of(two.labelled(counted(5)))):
        text = (await one.gathered(own)).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert text.count("# TYPE done_total") == 1
    assert families["took"].type == "histogram"
    done = {
        (sample.labels["worker"], sample.labels["kind"]): sample.value
        for sample in families["done"].samples
    }
    assert done == {("1", "a b"): 3, ("2", "a b"): 5}


async def test_who_is_gone_or_hangs_is_left_out(tmp_path):
    one, hung, gone = (Peers(name=name, folder=tmp_path, answer_s=0.2) for name in ("1", "2", "3"))
    own = text_of(one.labelled(counted(3)))

    async def never() -> bytes:
        await asyncio.Event().wait()
        return b""

    # A process that was killed leaves its socket behind.
    async with gone.shown(own):
        (tmp_path / "3.sock").rename(tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / "3.sock")
    async with one.shown(own), hung.shown(never):
        assert await one.gathered(own) == await own()
