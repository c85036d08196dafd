"""Explicit-state models of the two commit points, explored exhaustively to a bound."""
