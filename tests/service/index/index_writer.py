"""A writer process: lands a number of commits on one table and prints each as it is known.

python -m tests.service.index.index_writer <database url> <table id> <name> <count>
"""

import asyncio
import sys

from tests.builders.by_x import add
from tests.service.commit.committing import append
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine


async def write(url: str, table_id: str, name: str, count: int) -> None:
    engine = create_engine(url)
    index = PostgresIndex(engine)
    for number in range(count):
        transaction_id = f"{name}-{number}"
        async with index.commit_section(table_id) as section:
            commit = await append(section, add(transaction_id), transaction_id=transaction_id)
            await section.save()
        print(commit.record.version, transaction_id, commit.record.content_sha256, flush=True)
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
