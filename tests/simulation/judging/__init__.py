"""What is wrong with a world, and the defects that a judge has to find."""
