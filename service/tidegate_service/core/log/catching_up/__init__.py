"""Reading into the index what others put into a log: foreign commits of plain tables, the marks of
a publisher on catalog-managed ones, and what a commit section may know of the log without asking
the store under its lock. How files are written and decoded belongs in `core.log`.
"""
