"""Our rules, and the oracle that they are tested with, against Delta's own checker.

Schedules are drawn (`--schedules`): A starts, B commits, A commits. A is a transaction of stock
Delta Spark (`OptimisticTransaction`), and the same schedule is put to our rules. What we accept,
Delta must accept. Delta's jars come from Maven Central; without them, the test is skipped.
"""

from collections import Counter
from dataclasses import asdict, replace
from random import Random

from tests.conflict_oracle import Judge, verdict
from tests.conflict_schedules import Schedule, draw
from tests.interop.processes.foreign_spark import ForeignSpark
from tests.protocol.schedules import judged
from tidegate_protocol.proposal.transaction import Conflict, Invalid

SEED = 4
ENOUGH = 20
_EXCEPTIONS = {
    "concurrent-append": "ConcurrentAppendException",
    "concurrent-delete-read": "ConcurrentDeleteReadException",
    "concurrent-delete-delete": "ConcurrentDeleteDeleteException",
    "concurrent-transaction": "ConcurrentTransactionException",
    "metadata-changed": "MetadataChangedException",
    "protocol-changed": "ProtocolChangedException",
}


def compare(spark: ForeignSpark, schedule: Schedule, folder: str) -> str:
    """Assert that Delta accepts what we accept, and that it says what the oracle says for it; what
    both said."""
    (winner,) = schedule.winners
    fields = {name: value for name, value in asdict(schedule).items() if name != "winners"}
    answer = spark.transact({**fields, "folder": folder, "winner": winner})
    # A scan is a read of the files that it finds.
    schedule = replace(schedule, files=answer["read"])
    ours = judged(schedule)
    told = verdict(schedule)
    expected = None if told.deltas is None else _EXCEPTIONS[told.deltas.error]
    assert answer.get("error") == expected, (schedule, answer, told)
    if not isinstance(ours, Conflict):
        assert answer["version"] == 2, (schedule, answer)
        return "accepted by both"
    if expected is not None:
        return "refused by both"
    assert told.ours is not None
    assert told.ours.by is Judge.TIDEGATE
    return f"refused by us alone: {told.ours.won.name.lower()}"


def test_what_we_accept_delta_accepts(spark, tmp_path, request):
    schedules = request.config.getoption("--schedules")
    rng = Random(SEED)
    answers: Counter[str] = Counter()
    while answers.total() < schedules:
        schedule = draw(rng, for_delta=True)
        if isinstance(judged(schedule), Invalid):
            continue
        folder = tmp_path / f"table-{answers.total()}"
        answers[compare(spark, schedule, str(folder))] += 1
    print(dict(answers))
    # A few can all come to one answer.
    if schedules >= ENOUGH:
        assert answers["accepted by both"] > schedules / 10
        assert answers["refused by both"] > schedules / 3
