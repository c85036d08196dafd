"""The two kinds of table, each with the batch that commits to it."""

from tidegate_service.core.commit.batches.catalog_managed_batch import CatalogManagedBatch
from tidegate_service.core.commit.batches.plain_batch import PlainBatch
from tidegate_service.core.commit.batches.table_batch import TableBatch
from tidegate_service.core.context import Context
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.kinds import TableIdentity


def batches_of(table: TableIdentity) -> type[TableBatch]:
    return CatalogManagedBatch if table.catalog_managed else PlainBatch


def batch_of(context: Context, section: CommitSection, *, shared: bool) -> TableBatch:
    """A batch for a locked table. It is `shared` where other tables are in the same group."""
    return batches_of(section.table)(context, section, shared=shared)
