"""Clustered tables: what they are clustered by, and OPTIMIZE of them."""
