"""CLONE: a table as another one, or a folder of Parquet files, has it. A shallow one names the
files where they are, a deep one has copies of them.
"""
