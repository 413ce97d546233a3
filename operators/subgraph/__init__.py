"""Operators that return paths and other subgraphs."""
