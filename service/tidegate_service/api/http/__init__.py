"""HTTP before any route: the outermost layer of each request, which bounds, counts and logs it."""
