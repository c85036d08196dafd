"""A writer that knows nothing of the service: `python -m tests.chaos.past_writer <location>`.

Appends with `deltalake`, file by file, to the partitions that others read, until it is killed.
"""

import itertools
import sys

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.chaos.load import PARTITIONS

SCHEMA = pa.schema([("p", pa.string()), ("v", pa.int64())])


def main(location: str) -> None:
    for number in itertools.count():
        row = {"p": [f"a{number % PARTITIONS}"], "v": [number]}
        try:
            write_deltalake(location, pa.table(row, schema=SCHEMA), mode="append")
        except CommitFailedError:
            # It lost every race that it was in, and nothing was written.
            continue


if __name__ == "__main__":
    main(sys.argv[1])
