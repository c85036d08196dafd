"""What the README shows is what happens: its snippets run, in order, against a real service."""

import re
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "http://127.0.0.1:8720"


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in found if "make " not in block]


@pytest.fixture
def shown(server: str, spark: SparkSession) -> str:
    """What the README's Python prints, with the service of this test in the place of its own."""
    namespace: dict[str, object] = {}
    output = StringIO()
    with redirect_stdout(output):
        for block in blocks("python"):
            exec(compile(block.replace(ADDRESS, server), str(README), "exec"), namespace)
    return output.getvalue()


def test_the_snippets_do_what_the_readme_says(shown: str, server: str):
    lines = shown.splitlines()
    assert lines[0].startswith("Receipt(")
    assert "version=1," in lines[0]
    assert "version=2," in lines[1]
    assert lines[2] == "ConcurrentDeleteReadException 2 {'month': '5'}"
    assert lines[3] == "100"
    assert [line.split()[:2] for line in lines[4:]] == [
        ["4", "WRITE"],
        ["3", "WRITE"],
        ["2", "DELETE"],
    ]
    (curl,) = (block for block in blocks("sh") if "curl" in block)
    answer = subprocess.run(
        ["bash", "-c", curl.replace(ADDRESS, server)], capture_output=True, text=True, check=True
    )
    assert '"code":"concurrent-append"' in answer.stdout


def test_the_counts_in_the_readme_are_right(shown: str, server: str, spark: SparkSession):
    """The README's comments name three counts, which its snippets do not print."""
    reader = spark.read.format("tidegate").option("url", server)
    assert reader.load("main.demo.events").count() == 2400
    assert reader.option("version", "1").load("main.demo.events").count() == 1200
