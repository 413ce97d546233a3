"""HiRAG's hierarchical index: layers of summary entities above a graph of described entities."""
