"""Dataset loaders, one file each."""
