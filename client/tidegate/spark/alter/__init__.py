"""ALTER TABLE: columns, constraints, properties, identity columns and features. `Alter` has a
method for each command; the command itself is a function over an `Alteration`, which is one
transaction. Rows are read where those that are there have to fit, and never written.
"""
