"""What the tree builders do with their settings; other builders have their least values checked here too."""

from collections.abc import Mapping
from typing import Literal

from graphrag_bench.chunking.tokenizers import Tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.tree.extracts import by_extracts
from graphrag_bench.graph.tree.layers import Summarise
from graphrag_bench.graph.tree.summaries import by_model
from graphrag_bench.llm.base import ChatModel


def check(*, least: Mapping[str, int], **values: int | None) -> None:
    """Raise UserError for a setting below its least value: 1, where ``least`` does not say otherwise."""
    for name, value in values.items():
        lowest = least.get(name, 1)
        if value is not None and value < lowest:
            raise UserError(f"graph.{name} is {value}.", f"Write graph.{name}={lowest} or more.")


def writer(
    summary: Literal["model", "extractive"], chunks: ChunkTable, counter: Tokenizer, model: ChatModel, max_tokens: int
) -> Summarise:
    """Return who writes the summaries."""
    if summary == "model":
        return by_model(model, max_tokens)
    return by_extracts([chunk.text for chunk in chunks], counter, max_tokens)
