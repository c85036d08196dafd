"""Post-commit hooks: what an operator has run after a table's commits, in the order of versions and
at least once for each. No commit waits for a hook, and none fails for one. How far a hook is with a
table is a kind of the table's upkeep.
"""
