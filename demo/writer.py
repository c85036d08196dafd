"""One Spark writer as a process of its own: `python -m demo.writer URL TABLE PARQUET NUMBER`.

Appends its slices of the staged flights, one commit a slice, and prints a JSON line when its
session is up and one per commit.
"""

import json
import sys

import tidegate
from demo.flights import SLICE
from demo.spark import session

WRITERS = 4
APPENDS = 3
"""Commits a writer makes."""


def main(url: str, table_name: str, parquet: str, number: int) -> None:
    spark = session(f"writer {number}", cores=1)
    staged = spark.read.parquet(parquet)
    print(json.dumps({"ready": True}), flush=True)
    with tidegate.connect(url) as lake:
        table = lake.table(table_name)
        for append in range(APPENDS):
            rows = staged.where(staged[SLICE] == number * APPENDS + append).drop(SLICE)
            receipt = table.append(rows, user_metadata=f"writer {number + 1}")
            assert receipt is not None
            print(json.dumps({"version": receipt.version}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
