"""What predicates are read as, and what they say of files."""
