"""Unity Catalog's API: what stock engines call, over the same use cases as the service's own."""
