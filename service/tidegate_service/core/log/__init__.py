"""Reading and writing a table's `_delta_log`: versions, checkpoints, foreign commits, and the PUT
of a version. Work on the logs of catalog-managed tables alone belongs in `core.catalog_managed`.
"""
