"""What the README shows is what happens: its snippets run, in order, against a real service, by the
Python that it names, which is not the first on the PATH, and with no variable set but one that has
Java start sooner."""

import os
import re
import subprocess
import sys
from pathlib import Path

from demo.spark import ARCHIVE

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "http://127.0.0.1:8720"
# What Java itself says goes beside what the snippets print.
JAVA = (
    f'"-XX:SharedArchiveFile={ARCHIVE}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC '
    "-Xlog:disable -Xlog:all=warning:stderr"
)
COUNTS = """
reader = spark.read.format("tidegate").options(**options)
print(reader.load("main.demo.events").count())
print(reader.option("version", "1").load("main.demo.events").count())
"""
"""The README's comments name these, which its snippets do not print."""
WITHOUT_JARS = """
from tidegate.spark import UnsupportedSession
from tidegate.spark.storage.hadoop import HadoopStore
try:
    HadoopStore(spark, "s3://bucket/t").check()
except UnsupportedSession as refused:
    print(refused)
"""
"""The session of the other tests may have the jars for S3, and the README's has none."""


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in found if "make " not in block]


def test_the_snippets_do_what_the_readme_says(server: str):
    snippets = "".join([*blocks("python"), COUNTS, WITHOUT_JARS]).replace(ADDRESS, server)
    names = os.environ.keys() & {"HOME", "PATH", "JAVA_HOME"}
    environment = {name: os.environ[name] for name in names}
    environment["JDK_JAVA_OPTIONS"] = JAVA
    environment["PATH"] = os.pathsep.join(
        folder
        for folder in environment["PATH"].split(os.pathsep)
        if folder != os.path.dirname(sys.executable)
    )
    done = subprocess.run(
        [sys.executable, "-c", snippets], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Receipt(")
    assert "version=1," in lines[0]
    assert "version=2," in lines[1]
    assert lines[2] == "ConcurrentDeleteReadException 2 {'month': '5'}"
    assert lines[3] == "100"
    assert [line.split()[:2] for line in lines[4:7]] == [
        ["4", "WRITE"],
        ["3", "WRITE"],
        ["2", "DELETE"],
    ]
    assert lines[7:9] == ["2400", "1200"]
    refused = "\n".join(lines[9:])
    assert "this Spark session has no file system for s3a://" in refused
    assert "add org.apache.hadoop:hadoop-aws:" in refused
    (curl,) = (block for block in blocks("sh") if "curl" in block)
    answer = subprocess.run(
        ["bash", "-c", curl.replace(ADDRESS, server)], capture_output=True, text=True, check=True
    )
    assert '"code":"concurrent-append"' in answer.stdout
