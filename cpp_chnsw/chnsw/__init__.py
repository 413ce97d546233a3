"""C-HNSW: one navigable graph over all layers of a hierarchy (ArchRAG)."""

from chnsw import _core as _core
