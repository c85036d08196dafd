"""Errors and refusals as answers, for each of the service's APIs."""
