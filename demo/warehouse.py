"""Where the demo's table lies: the local disk, or the bucket of an S3 server of the demo's own."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo.jars import hadoop_aws
from demo.s3_server import S3Server
from demo.spark import SETTINGS_VARIABLE

KINDS = ("local", "s3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """`service` is the service's environment for it, `deltalake` what a reader of the log alone
    needs to know."""

    service: Mapping[str, str] = field(default_factory=dict, repr=False)
    deltalake: Mapping[str, str] = field(default_factory=dict, repr=False)


def on_s3(server: S3Server) -> Warehouse:
    """The warehouse in the server's bucket; from here on, Spark sessions reach it.

    Raises `JarsUnavailable`.
    """
    options = server.storage_options
    os.environ[SETTINGS_VARIABLE] = json.dumps(_spark_settings(server, hadoop_aws()))
    return Warehouse(
        service={
            "TIDEGATE_WAREHOUSE": f"s3://{server.bucket}/warehouse",
            "TIDEGATE_STORAGE_OPTIONS": json.dumps(options),
        },
        deltalake=options,
    )


def _spark_settings(server: S3Server, jars: list[Path]) -> dict[str, str]:
    return {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": server.region,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": server.access_key,
        "spark.hadoop.fs.s3a.secret.key": server.secret_key,
    }
