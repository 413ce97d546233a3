"""Operators that return communities."""
