"""Table features, one file each, and the properties that turn them on. What they ask of a
transaction that changes them belongs in `prepare`.
"""
