"""Predicates beside Spark: no row is passed over whatever text, values and session there are."""
