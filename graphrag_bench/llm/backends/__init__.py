"""Chat model backends, one a file."""
