"""Operators that return nodes."""
