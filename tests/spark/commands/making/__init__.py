"""Tables that are made: by builders, as clones, of Parquet files."""
