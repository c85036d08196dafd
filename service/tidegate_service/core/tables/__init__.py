"""What is asked of a table beside commits: create, register, find, list, scan, history, forget.
What mends a table belongs in `core.maintenance`.
"""
