"""One file a resource: its routes, who may call them, and their parameters."""
