"""Report builders, one file each."""
