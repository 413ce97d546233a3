"""graphrag_bench: build graph-based RAG methods from operators, compare them fairly, and trust the numbers."""

__version__ = "0.1.0"
