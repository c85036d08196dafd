"""Reading what other engines write: deletion vectors, mapped columns, widened types, changes."""
