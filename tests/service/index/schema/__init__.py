"""Migrations, from each earlier schema on."""
