"""Symlink manifests: the files of each partition, for readers that know nothing of Delta.

`lines.py` says what stands in them and which tables have none, `making.py` puts them, all or those
of some partitions, and `generate.py` has them made where somebody asks. They are made after
commits by a hook (`core.hooks.symlink_manifests`); `in_order.py` keeps both from leaving older ones
than the hook's cursor says.
"""
