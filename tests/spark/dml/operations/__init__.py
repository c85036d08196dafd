"""The operations of vectors, by the commands that they are of."""
