"""Parts of what is scarce, so that no caller takes all of it: threads, turns, shares, work that
would hold the event loop, and room on the disk. What is shared (proposals, scans, bodies) is named
by its users.
"""
