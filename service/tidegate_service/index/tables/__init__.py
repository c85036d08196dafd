"""The beginning and the end of a table's rows: locations that exclude each other, rebuilding,
forgetting, and what is kept of forgotten tables.
"""
