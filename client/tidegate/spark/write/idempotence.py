"""What is written once: under an application's id and a version of its own (PROTOCOL.md,
"Transaction Identifiers"), which a write is given, or the session by Delta's settings.
"""

import logging

from pyspark.sql import SparkSession

from tidegate.spark.session_settings import TXN, TXN_IS_RESET, TXN_VERSION, Settings, boolean
from tidegate.spark.write_options import parse_txn
from tidegate.transaction_handle import TransactionHandle

_LOG = logging.getLogger(__name__)


def txn_of(spark: SparkSession) -> tuple[str, int] | None:
    """The application id and the version that the session gives to what it writes. Raises
    `InvalidRequest` for one without the other, and for values that are none, and
    `UnsupportedSession` where the session does not say whether it is to forget the version."""
    _is_reset(spark)
    found = {name: spark.conf.get(setting, None) for name, setting in TXN.items()}
    return parse_txn({name: value for name, value in found.items() if value is not None})


def is_recorded(transaction: TransactionHandle, txn: tuple[str, int] | None) -> bool:
    """Whether the table has this version of the application, or a later one, already: the write
    or command is left out then. Recorded as read."""
    if txn is None:
        return False
    app_id, version = txn
    recorded = transaction.txn_version(app_id)
    if recorded < version:
        return False
    _LOG.info(
        "application %s has recorded its version %d; version %d is not written again",
        *(app_id, recorded, version),
    )
    return True


def is_done(transaction: TransactionHandle, spark: SparkSession) -> bool:
    """As `is_recorded`, of the session's."""
    txn = txn_of(spark)
    if not is_recorded(transaction, txn):
        return False
    reset(spark, txn)
    return True


def record(transaction: TransactionHandle, spark: SparkSession) -> tuple[str, int] | None:
    """Have the transaction record the session's, which is returned, for `reset` once it has
    landed."""
    txn = txn_of(spark)
    if txn is not None:
        # As read, too, where the transaction was begun anew behind `is_done`.
        transaction.txn_version(txn[0])
        transaction.set_transaction(*txn)
    return txn


def reset(spark: SparkSession, txn: tuple[str, int] | None) -> None:
    """Unset the session's version where `txn`, which has landed, is the session's, and its setting
    `spark.databricks.delta.write.txnVersion.autoReset.enabled` is true: what else is written under
    that version would be left out."""
    if txn is not None and _is_reset(spark) and txn == txn_of(spark):
        spark.conf.unset(TXN_VERSION)


def _is_reset(spark: SparkSession) -> bool:
    return Settings(spark).get(TXN_IS_RESET, boolean, False)
