"""No augmentation: what the graph joins is what is clustered."""

from graphrag_bench.community.layered import Layer
from graphrag_bench.community.simple import Edges
from graphrag_bench.registry import register


@register("augmenter", "none")
def none(layer: Layer) -> Edges:
    """Return the layer's edges as they are (ArchRAG's ablation without augmentation)."""
    return layer.edges
