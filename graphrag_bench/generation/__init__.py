"""Contexts and answers."""
