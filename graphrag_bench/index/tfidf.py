"""TF-IDF over the texts of a graph's nodes (KGP)."""
