"""A writer that knows nothing of the service: `python -m tests.chaos.past_writer <location>`.

Appends with `deltalake`, file by file, to the partitions that others read, until it is killed.
"""

import itertools
import sys

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

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
        except DeltaError as error:
            # Listing a folder while files are put into it may miss one of them. A gap that stays
            # is found by the checker, which reads the log at the end.
            if "found gap" not in str(error):
                raise


if __name__ == "__main__":
    main(sys.argv[1])
