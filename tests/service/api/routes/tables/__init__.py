"""Routes of tables: create, register, forget, read."""
