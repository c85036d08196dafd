"""Which files may hold rows that a predicate keeps: predicates, statistics, and reads."""
