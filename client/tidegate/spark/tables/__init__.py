"""A table as its reader and its writer see it: columns, partitions, predicates, and what is
refused.
"""
