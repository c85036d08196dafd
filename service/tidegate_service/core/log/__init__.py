"""Reading and writing a table's `_delta_log`: versions, checkpoints, foreign commits, and the PUT
of a version. What only catalog-managed tables do with theirs belongs in `core.catalog_managed`.
"""
