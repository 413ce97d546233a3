"""Operators that return new texts about a question, or yes or no."""
