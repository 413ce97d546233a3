"""Operators that begin walks."""
