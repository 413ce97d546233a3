"""graphrag_bench: build graph-based RAG methods from operators, compare them fairly, and trust the numbers."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graphrag_bench.api import compare as compare

__all__ = ["__version__", "compare"]


def __getattr__(name: str) -> Any:
    """Import the public functions when they are first used, so that importing the package costs nothing."""
    if name == "compare":
        from graphrag_bench.api import compare

        return compare
    raise AttributeError(f"module 'graphrag_bench' has no attribute {name!r}")
