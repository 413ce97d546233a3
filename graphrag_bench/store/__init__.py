"""Artifacts, arrays and files on disk."""
