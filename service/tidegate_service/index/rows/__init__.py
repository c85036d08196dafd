"""Values as the rows of the index, and back: keys, records, files, commits, pages of them. No
statement of a use case's own.
"""
