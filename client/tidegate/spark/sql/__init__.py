"""Queries over tables, and statements that change, rearrange or describe one, as calls of the
commands. A statement is cut into clauses here. Their expressions and queries are Spark's, letter by
letter, but for the names of tables.
"""
