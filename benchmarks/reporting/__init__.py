"""Results on disk, and the report with its pictures that is made of them."""
