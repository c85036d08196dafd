"""What one instance knows for itself while it runs: recent commits, tables by reference, which logs
it has seen, which commits are under way. All of it may be lost; nothing here is an answer.
"""
