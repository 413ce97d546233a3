"""Communities: clustering and reports."""
