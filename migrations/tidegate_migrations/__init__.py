"""The index's schema, one revision at a time (Alembic). `tidegate migrate` applies them."""
