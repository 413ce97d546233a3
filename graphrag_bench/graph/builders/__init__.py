"""Graph builders, one file each."""
