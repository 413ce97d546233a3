"""Clusterers, one file each."""
