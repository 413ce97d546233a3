"""Backends of vector search, one file each."""
