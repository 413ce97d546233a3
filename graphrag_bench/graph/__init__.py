"""Graphs: the container, its builders, extraction."""
