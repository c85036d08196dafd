"""What a commit writes: rows of commits, files and applications, many tables at a time, and the
first row of a registered table.
"""
