"""Data files of a transaction: written once to where they stay, by Spark or by Arrow, with Delta's
statistics. Which rows they hold is decided in `write` and `commands`.
"""
