"""Where a row is: columns beside those of the table."""

FILE = "__tidegate_file"
"""The column with the place of a row's file among the given ones."""
POSITION = "__tidegate_position"
"""The column with the position of a row in its file, by which deletion vectors name it."""
