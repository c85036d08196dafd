"""One of many writers, as a process of its own: `python -m tests.service.process.writer_process`.

Appends a file of its own per commit; every third commit replaces the file of the one before,
which it reads by predicate, and takes the work up again from the new head when it loses. Prints
one JSON line per receipt.
"""

import json
import sys

import tidegate


def data_file(writer: int, number: int) -> tidegate.DataFile:
    return tidegate.DataFile(
        path=f"writer={writer}/{number}.parquet",
        partition_values={"writer": str(writer)},
        size=1000,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )


def one_commit(table: tidegate.Table, writer: int, number: int) -> tidegate.Receipt:
    if number % 3:
        with table.transaction() as txn:
            txn.add([data_file(writer, number)])
            return txn.commit("WRITE")
    while True:
        try:
            with table.transaction() as txn:
                txn.remove(txn.filter_files(f"writer = {writer}"))
                txn.add([data_file(writer, number)])
                return txn.commit("WRITE")
        except tidegate.ConflictError:
            continue


def main(url: str, name: str, writer: int, commits: int) -> None:
    with tidegate.connect(url) as lake:
        table = lake.table(name)
        for number in range(commits):
            receipt = one_commit(table, writer, number)
            line = {"version": receipt.version, "transaction_id": receipt.transaction_id}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
