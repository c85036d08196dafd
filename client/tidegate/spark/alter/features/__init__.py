"""Features of a table's protocol: what it takes to have them, and to be rid of them again."""
