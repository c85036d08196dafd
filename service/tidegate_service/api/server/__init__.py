"""The HTTP server: uvicorn within bounds, its connections, how answers are written to them. What a
request is answered with belongs in `api.http` and above."""
