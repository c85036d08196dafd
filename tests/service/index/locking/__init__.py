"""Who waits for whom in Postgres, and what a broken wait leaves."""
