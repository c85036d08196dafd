"""What a commit writes: rows of commits, files and applications, many tables at a time; and the
first snapshot of a registered table.
"""
