"""ALTER TABLE, and table features."""
