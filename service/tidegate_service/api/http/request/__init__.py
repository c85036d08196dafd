"""What a request says, and what bounds it before a route sees it."""
