"""Tests of the routes, resource by resource, and their documents."""
