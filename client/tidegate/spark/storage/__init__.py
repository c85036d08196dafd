"""Where data files lie, in the vocabularies of Hadoop and of Arrow."""
