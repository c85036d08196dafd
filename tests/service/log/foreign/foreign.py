"""What another writer puts into a log, past the service."""

import json
import os


def foreign_commit(world, table, version, *actions):
    content = "".join(json.dumps(action) + "\n" for action in actions)
    world.log_file(table, version).write_text(content)


def date_file(world, table, version, modified_ms):
    """Give a version's file a modification time."""
    os.utime(world.log_file(table, version), ns=(modified_ms * 10**6, modified_ms * 10**6))


FOREIGN_ADD = {
    "add": {
        "path": "x=1/theirs",
        "partitionValues": {"x": "1"},
        "size": 5,
        "modificationTime": 1,
        "dataChange": True,
    }
}
