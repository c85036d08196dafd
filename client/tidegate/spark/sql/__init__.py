"""Statements of SQL that change, rearrange or describe one table, as calls of the commands. A
statement is cut into clauses here; their expressions and queries are Spark's, letter by letter.
"""
