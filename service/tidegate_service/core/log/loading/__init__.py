"""Reading a whole log into the index, as somebody else may have written it. What comes behind what
the index has belongs in `core.log.catching_up`."""
