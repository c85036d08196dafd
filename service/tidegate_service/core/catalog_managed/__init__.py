"""Tables whose commits are ratified first and published later: publishing, and whether the log at
the table's place is still the table's own. How a commit is ratified belongs in `core.commit`.
"""
