"""A stock client beside writers of ours that are never done: it lands within three tries."""

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.builders.flights import add as own_add
from tests.service.unity_catalog.stock import T0, StockClient, StockTable

WRITERS = 16
TRIES = 3
COMMITS = 3
CHECKS_S = 0.15
"""A stock engine takes so long from the table's state to its staged commit."""


def landed(table: StockTable) -> int:
    """In how many tries a commit of the client's landed. Its engine is as Delta Spark's: staged
    anew, the transaction keeps its id."""
    info = {"txnId": str(uuid.uuid4())}
    for number in range(1, TRIES + 1):
        loaded = table.load()
        version = loaded["latest-table-version"] + 1
        time.sleep(CHECKS_S)
        at = max(T0 + version * 1000, loaded["metadata"]["last-commit-timestamp-ms"] + 1)
        answer = table.propose(table.stage(version, inCommitTimestamp=at, timestamp=at, **info))
        if answer.status_code == 200:
            return number
        assert answer.status_code == 409, answer.text
    return TRIES + 1


def test_it_lands_within_three_tries(stock: StockClient, table: StockTable):
    over = threading.Event()
    url = f"/tables/main.air.{table.name}/commits"

    def write() -> int:
        count = 0
        while not over.is_set():
            line = own_add(f"{threading.get_ident()}-{count}", partitionValues={})
            stock.own.post(url, json={"operation": "WRITE", "actions": [line]}).raise_for_status()
            count += 1
        return count

    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write) for _ in range(WRITERS)]
        try:
            while table.load()["latest-table-version"] < WRITERS:
                time.sleep(0.01)
            tries = [landed(table) for _ in range(COMMITS)]
        finally:
            over.set()
        counts = [each.result() for each in writing]
    assert max(tries) <= TRIES, tries
    # The others were held up for a moment, and no longer.
    assert min(counts) > COMMITS, counts
