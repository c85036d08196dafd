"""Expressions of commands: checked as arguments, resolved over the columns that they may name, cast
as Delta stores them. Nothing here reads a table.
"""
