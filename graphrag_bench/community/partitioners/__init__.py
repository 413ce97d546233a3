"""Ways to divide one layer of nodes into communities, one file each."""
