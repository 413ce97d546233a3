"""Operators that return relationships."""
