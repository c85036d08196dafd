"""Spark sessions of the demo take Java's classes from the archive where it fits."""

from demo.spark import java_options


def archives(options):
    return [option for option in options if "SharedArchiveFile" in option]


def test_an_archive_that_is_there_is_used(tmp_path):
    archive = tmp_path / "classes.jsa"
    assert archives(java_options({}, archive)) == []
    archive.touch()
    assert archives(java_options({}, archive)) == [f'"-XX:SharedArchiveFile={archive}"']


def test_sessions_with_jars_of_their_own_do_without(tmp_path):
    archive = tmp_path / "classes.jsa"
    archive.touch()
    assert archives(java_options({"spark.driver.extraClassPath": "a.jar"}, archive)) == []
