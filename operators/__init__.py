"""The operator pool: one file an operator."""
