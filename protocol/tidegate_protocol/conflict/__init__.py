"""A transaction against the winning commits (Delta: ConflictChecker.scala), and the window of the
newest of them.
"""
