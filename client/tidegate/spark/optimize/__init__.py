"""OPTIMIZE and REORG: rows are written again into other files and stay what they are. Files are put
into bins, bins are written side by side, and what a concurrent commit took away is planned anew.
And COMPUTE STATS, by which files are found again.
"""
