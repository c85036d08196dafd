"""Tests of the service that run a second time with the warehouse on the S3 server."""
