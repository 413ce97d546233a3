"""Question converters, one file each."""
