"""A stream from a table as Spark runs it, without a query."""

import json
import pickle

from pyspark.serializers import CloudPickleSerializer

from tidegate.spark.source.source import TidegateSource


class Reader:
    """A stream from a table, asked as Spark asks it, with the offset that a checkpoint keeps; each
    run is a new one that takes what there is and ends."""

    def __init__(self, url):
        self._url = url
        self._offset = None

    def run(self, table, **options):
        """The rows of each batch of a run. Raises what it fails of."""
        source = TidegateSource({"path": table.name, "url": self._url, **options})
        schema = source.schema()
        stream = source.streamReader(schema)
        # Spark sends copies of it to the tasks.
        tasks = pickle.loads(CloudPickleSerializer().dumps(source.streamReader(schema)))
        stream.prepareForTriggerAvailableNow()
        if self._offset is None:
            self._offset = json.dumps(stream.initialOffset())
        batches = []
        while True:
            start = json.loads(self._offset)
            end = json.loads(json.dumps(stream.latestOffset(start, stream.getDefaultReadLimit())))
            if end == start:
                return batches
            parts = stream.partitions(start, end)
            found = [row for part in parts for batch in tasks.read(part) for row in tuples(batch)]
            batches.append(sorted(found))
            self._offset = json.dumps(end)


def tuples(batch):
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
