"""Registering the data source: by which Python its workers run, and with which kinds of session."""

import sys
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkAttributeError

from tidegate.spark import register


class OfConnect:
    """What `register` uses of a session of Spark Connect, which has nothing of the JVM."""

    def __init__(self) -> None:
        self.registered: list[type] = []
        self.conf = SimpleNamespace(get=lambda _: "an-application")
        self.dataSource = SimpleNamespace(register=self.registered.append)

    def __getattr__(self, name: str) -> object:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name}
        )


def test_a_session_of_spark_connect():
    session = OfConnect()
    register(session)
    assert [source.name() for source in session.registered] == ["tidegate"]


@pytest.mark.parametrize(
    ("master", "named", "found"),
    [
        ("local[2]", None, sys.executable),
        ("local[2]", "another", "python3"),
        ("spark://somewhere:7077", None, "python3"),
    ],
)
def test_the_python_of_the_workers(monkeypatch, master, named, found):
    """That of the driver in local mode, or else what Spark was told."""
    if named is None:
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    else:
        monkeypatch.setenv("PYSPARK_PYTHON", named)
    session = OfConnect()
    session.sparkContext = SimpleNamespace(master=master, pythonExec="python3")
    used: list[str] = []
    session.dataSource.register = lambda _: used.append(session.sparkContext.pythonExec)
    register(session)
    assert used == [found]
    assert session.sparkContext.pythonExec == "python3"
