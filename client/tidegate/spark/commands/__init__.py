"""The commands that change a table's rows: what they share, DELETE, UPDATE and RESTORE. MERGE has a
room of its own. Each is one transaction; rows go through Spark plans, and none through Python.
"""
