"""An expression over what is known of a whole file, as Spark would evaluate it for each row."""
