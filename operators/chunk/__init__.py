"""Operators that return chunks."""
