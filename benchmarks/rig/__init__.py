"""What all benches stand on: the service and its Postgres, large tables, what processes use."""
