"""Which transaction is active in a thread: the one that reads of its table join."""

import threading

from tidegate.errors import TransactionActive
from tidegate.transaction_content import TransactionContent


class _Active(threading.local):
    """One thread's transactions, by the id of their table."""

    def __init__(self) -> None:
        self.by_table: dict[str, TransactionContent] = {}


_active = _Active()


def active_transaction(table_id: str) -> TransactionContent | None:
    """The table's transaction whose `with` block this thread is in and that still takes
    something. Other threads have their own."""
    found = _active.by_table.get(table_id)
    return found if found is not None and found.is_open else None


def check_none_active(table_id: str, *, but: TransactionContent | None = None) -> None:
    """Raise `TransactionActive` where this thread has an active transaction of the table other
    than `but`."""
    found = active_transaction(table_id)
    if found is not None and found is not but:
        raise TransactionActive(
            f"transaction {found.id} of table {found.table.name} is active in this thread; "
            "expected one at a time",
            transaction_id=found.id,
            definite=True,
            error_class="DELTA_ACTIVE_TRANSACTION_ALREADY_SET",
        )


def activate(transaction: TransactionContent) -> None:
    """Make it the thread's transaction of its table. Raises `TransactionActive`."""
    check_none_active(transaction.table.id)
    _active.by_table[transaction.table.id] = transaction


def deactivate(transaction: TransactionContent) -> None:
    """Undo `activate`, in the same thread; another transaction that is active by now stays so."""
    if _active.by_table.get(transaction.table.id) is transaction:
        del _active.by_table[transaction.table.id]
