"""Request bodies to values: inflated, bounded, decoded, a piece at a time. What is not a body
(paths and queries) belongs in `api.routing`.
"""
