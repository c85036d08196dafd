"""What the use cases need from the world, and the values that pass through: the commit index,
object storage, records and outcomes. Nothing here does anything; `index` and `storage` implement
it.
"""
