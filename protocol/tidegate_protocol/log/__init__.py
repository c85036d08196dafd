"""Files of `_delta_log` as values: actions, lines, contents, names, and which make a table."""
