"""Parquet files that others wrote are read in processes of their own. Arrow ends the process that
reads a file which was made to do so, and nothing that is checked before it finds all of these
files. Here are the processes (`forking`, `reader`), what the service has of them (`readers`), and
what they say to each other (`messages`). They keep an end from the service, and are no prison."""
