"""What an index says of a table, and a checkpoint that a rebuild may begin at."""

import json
from dataclasses import replace

from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.tables.lookup import get_table


async def picture(world, table):
    """All that the index answers about a table, but how often it was made anew."""
    index = world.context.index
    versions = range(table.latest_version + 1)
    return (
        replace(await get_table(world.context, table.id), epoch=0),
        [
            (one.version, one.timestamp, one.transaction_id, one.body_digest, one.content_sha256)
            for one in await index.history(table.id, from_version=0, to_version=None, limit=100)
        ],
        [
            [add async for batch in index.files(table.id, version) for add in batch]
            for version in versions
        ],
        [await index.state_at(table.id, version) for version in versions],
        await index.app_transaction(table.id, "stream", known=ReplicatedHeads()),
    )


def checkpointed(world, table, version):
    """A V2 checkpoint in JSON of the versions up to this one, which add files and no more."""
    lines = []
    for earlier in range(version + 1):
        for action in world.actions_of(table, earlier):
            lines += [] if "commitInfo" in action else [action]
    lines.append({"checkpointMetadata": {"version": version}})
    name = f"{version:020d}.checkpoint.11111111-2222-4333-8444-555555555555.json"
    content = "".join(json.dumps(line) + "\n" for line in lines)
    (world.log_folder(table) / name).write_text(content)
