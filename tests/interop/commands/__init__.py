"""What stock readers make of tables that our commands changed."""
