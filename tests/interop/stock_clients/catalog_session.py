"""A session of stock Delta Spark whose catalog `main` is the service, by Unity Catalog's API.

The catalog is Unity Catalog's own Spark connector. No registry has it for this Spark, so it is
built from its sources (docs/development.md says how), and an environment variable says where it
lies.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop.processes.foreign_spark import ForeignSpark, foreign_spark

CONNECTOR_VARIABLE = "TIDEGATE_UNITY_CATALOG_CONNECTOR"


def connector() -> Path:
    """The connector's jar. Skips the test where the variable names none."""
    named = os.environ.get(CONNECTOR_VARIABLE)
    if not named:
        pytest.skip(f"needs Unity Catalog's Spark connector, a jar that {CONNECTOR_VARIABLE} names")
    found = Path(named)
    assert found.is_file(), f"{CONNECTOR_VARIABLE} names {named}, which is no file"
    return found


@contextmanager
def catalog_session(
    folder: Path, url: str, settings: Mapping[str, str] | None = None, jars: tuple[Path, ...] = ()
) -> Iterator[ForeignSpark]:
    """Run one; `folder` is for what it prints."""
    catalog = {
        "spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog",
        "spark.sql.catalog.main.uri": url,
        "spark.sql.catalog.main.token": "some-token",
        **(settings or {}),
    }
    folder.mkdir(exist_ok=True)
    with foreign_spark(folder, catalog, (connector(), *jars)) as session:
        yield session
