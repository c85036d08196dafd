"""Stock clients that commit through the service by Unity Catalog's API."""
