"""Parts of what is scarce, so that no caller takes all of it: threads, turns, shares, and work that
would hold the event loop. What is shared (proposals, scans, bodies) is named by its users.
"""
