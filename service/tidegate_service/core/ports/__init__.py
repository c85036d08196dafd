"""What the use cases need from the commit index, and the values that pass through: records,
outcomes, pages of files. Nothing here does anything; `index` implements it. What they need from
object storage is in `store`.
"""
