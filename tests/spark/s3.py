"""What a Spark session has to know of the tests' S3 server."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from demo.s3_server import S3Server


def settings_of(server: S3Server) -> dict[str, str]:
    """Hadoop's settings for the server."""
    return {
        "fs.s3a.endpoint": server.endpoint,
        "fs.s3a.endpoint.region": server.region,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": server.access_key,
        "fs.s3a.secret.key": server.secret_key,
    }


UNCACHED = {"fs.s3a.impl.disable.cache": "true"}
"""Without this, Hadoop keeps what it has made for a bucket once, whatever is set afterwards."""


def configure(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Change Hadoop's settings of a session from here on; those of the test before are put back
    by the fixture `session`."""
    for name, value in settings.items():
        session.conf.set(name, value)
