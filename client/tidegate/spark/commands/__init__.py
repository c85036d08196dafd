"""The commands that change a table's rows: DELETE, UPDATE, MERGE. Each is one transaction and runs
as Spark plans; no row passes through Python.
"""
