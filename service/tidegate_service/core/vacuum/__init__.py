"""VACUUM: deleting data files that no version within the retention names. `vacuum.py` is the use
case, `request.py` what is asked and whether it may be. `names.py` says which files can be deleted
at all, `named.py` which ones the index names, `orphans.py` finds the rest by a merge of two sorted
streams, and `spools.py` keeps what is found on disk, so that memory does not grow with a table."""
