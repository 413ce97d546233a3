"""C-HNSW: one navigable graph over all layers of a hierarchy (ArchRAG)."""

from chnsw._core import Index, simd

__all__ = ["Index", "simd"]
