"""What another writer puts into a log, past the service."""

import json


def foreign_commit(world, table, version, *actions):
    content = "".join(json.dumps(action) + "\n" for action in actions)
    world.log_file(table, version).write_text(content)


FOREIGN_ADD = {
    "add": {
        "path": "x=1/theirs",
        "partitionValues": {"x": "1"},
        "size": 5,
        "modificationTime": 1,
        "dataChange": True,
    }
}
