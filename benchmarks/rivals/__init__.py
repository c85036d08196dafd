"""What the service is measured against: writers that commit with `deltalake`, and pgbench."""
