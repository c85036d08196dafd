"""Tables whose log was there before."""
