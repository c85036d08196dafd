"""What Spark's UI, the log and a terminal say of work that is under way."""
