"""Jars from Maven Central for tests, which are skipped, saying why, where it cannot be reached."""

from pathlib import Path

import pytest

from demo.jars import JarsUnavailable, fetched, hadoop_aws


def jars(name: str) -> list[Path]:
    """The jars of `hadoop-aws`, or of `group:artifact:version`; skips the test without them."""
    try:
        return hadoop_aws() if name == "hadoop-aws" else fetched(*name.split(":"))
    except JarsUnavailable as error:
        pytest.skip(f"needs jars that Spark comes without: {error}")
