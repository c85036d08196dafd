"""Values that a table has for columns which a DataFrame lacks: numbers and defaults."""
