"""A log copied to the instance's disk, so that a section reads the copy and not the store under its
lock. How much all copies may take belongs in `core.instance.copy_limits`, what is read of a log in
`core.log.loading.load`.
"""
