"""HTTP before any route: the server, the outermost layer of each request, limits, and problems."""
