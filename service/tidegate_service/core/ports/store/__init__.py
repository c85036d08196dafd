"""What the use cases need from object storage, and the values that pass: each kind of file that may
be deleted or replaced has a port of its own, which reaches no other. `storage` implements them.
"""
