"""`format("tidegate")`: PySpark's Python data source."""
