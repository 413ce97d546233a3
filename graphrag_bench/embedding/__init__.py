"""The Embedder protocol, its backends, and the memory in front of them."""
