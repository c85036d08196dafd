"""MERGE: its builder and clauses, its plan over two DataFrames, and the commit."""
