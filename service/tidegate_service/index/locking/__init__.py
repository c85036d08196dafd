"""Transactions that hold the locks of tables' rows: one table's, or a group's."""
