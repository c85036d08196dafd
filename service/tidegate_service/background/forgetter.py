"""The forgetter: goes on with the forgetting of tables that an instance was cut off in."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, ServiceError, TableQuarantined
from tidegate_service.core.maintenance.forget import resume_forgetting
from tidegate_service.core.ports.upkeep.forgettings import Forgetting

logger = logging.getLogger("tidegate.maintenance")

POLL_S = 2.0
"""Between two looks; one is a question of a table that is empty but for a few minutes."""
FIRST_BACKOFF_S = 5.0
LONGEST_BACKOFF_S = 3600.0


@asynccontextmanager
async def forgetting_on(context: Context) -> AsyncIterator[None]:
    """Look for what was cut off, in all instances, as long as the context lasts."""
    looking = asyncio.create_task(_looking(context), name="forgetter")
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _looking(context: Context) -> None:
    while True:
        await asyncio.sleep(POLL_S)
        try:
            await go_on(context)
        except ServiceError as error:
            logger.warning("looking for forgettings failed", extra={"reason": error.detail})
        except Exception:
            logger.exception("the forgetter met a defect")


async def go_on(context: Context) -> int:
    """Go on with all that was cut off, one after the other; returns how many tables it forgot."""
    count = 0
    while (found := await context.forgettings.next()) is not None:
        count += await _resumed(context.called_by(found.by), found)
    return count


async def _resumed(context: Context, found: Forgetting) -> bool:
    fields = {"table_id": found.table_id, "principal": found.by.name}
    logger.info("a forgetting that was cut off goes on", extra=fields)
    try:
        await resume_forgetting(context, found)
    except NotFound:
        return False
    except TableQuarantined as error:
        # It is an operator's to say what becomes of it, after which nobody expects this.
        logger.warning("a forgetting is given up", extra={**fields, "reason": error.detail})
        await context.forgettings.drop(found.table_id, found.claim)
        return False
    except ServiceError as error:
        logger.warning("forgetting failed", extra={**fields, "reason": error.detail})
        await _put_off(context, found)
        return False
    except Exception:
        logger.exception("forgetting met a defect", extra=fields)
        await _put_off(context, found)
        return False
    return True


async def _put_off(context: Context, found: Forgetting) -> None:
    again_in_s = min(FIRST_BACKOFF_S * 2 ** min(found.failures, 20), LONGEST_BACKOFF_S)
    await context.forgettings.put_off(found.table_id, found.claim, again_in_s=again_in_s)
