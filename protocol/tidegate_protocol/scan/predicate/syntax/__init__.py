"""Predicate text to an expression tree that is certain to be the one Spark would build."""
