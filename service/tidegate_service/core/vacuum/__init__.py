"""VACUUM: deleting data files that no version within the retention names. `begin.py` and
`vacuum.py` are the use case, `request.py` is what is asked and whether it may be, `commits.py`
what it says of itself in the log. `logs.py` reads what others have committed, and `clones.py` says
which tables name files of this one. `orphans.py` finds those that the index does not name, by a
merge of two sorted streams. `last_look.py` asks again before files go, and `late_names.py` is what
was named since. `found.py` keeps files on the disk, so that memory does not grow with a table."""
