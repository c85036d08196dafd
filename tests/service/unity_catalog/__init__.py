"""The service as stock engines call it, by Unity Catalog's API."""
