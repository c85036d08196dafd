"""Postgres, the S3 server and the service as processes of the tests."""
