"""Tests of symlink manifests: what stands in them, and that they follow their tables."""
