"""RAPTOR's trees: clustering of texts layer by layer, and a summary a cluster."""
