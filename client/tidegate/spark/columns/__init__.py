"""Columns of a table as a write meets them: rows conformed to them and checked against what the
table asks, and the columns themselves when a write changes them.
"""
