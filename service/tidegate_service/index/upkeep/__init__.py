"""The upkeep of tables: what is due, who has claimed it, and what it is made from."""
