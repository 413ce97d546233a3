"""Extractors, one file each."""
