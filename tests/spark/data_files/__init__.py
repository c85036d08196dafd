"""The data files that a transaction writes: their place, their statistics, what attempts leave."""
