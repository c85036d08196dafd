"""Rows and blocks of rows in Postgres's binary format, past SQLAlchemy.

As text, a page of log lines or of paths would be twice as long.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.pipeline import Driver

BinaryRow = tuple[Any, ...]
"""A row as Python values, in the order of the statement's columns."""


async def binary_rows(
    connection: AsyncConnection, statement: str, values: Mapping[str, object]
) -> list[BinaryRow]:
    """All rows of a statement whose parameters are `%(name)s`."""
    driver = await driver_of(connection)
    async with driver.cursor(binary=True) as cursor:
        await cursor.execute(statement, values)
        return await cursor.fetchall()


def savepoint(driver: Driver) -> AbstractAsyncContextManager[object]:
    """A part of the transaction that an error inside rolls back alone."""
    return driver.transaction()


async def copy_in(driver: Driver, statement: str, block: bytes) -> None:
    """Write a block of rows by COPY, which no pipeline takes."""
    async with driver.cursor() as cursor, cursor.copy(statement) as copy:
        await copy.write(block)
