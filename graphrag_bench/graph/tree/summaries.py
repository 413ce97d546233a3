"""Summaries by a model: one call a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.graph.tree.layers import Cluster, Summarise, Summary
from graphrag_bench.llm.base import ChatModel, Message, Request
from graphrag_bench.llm.estimate import Bound, Calls, Scale, prompt_of
from graphrag_bench.llm.window import cut_to_window, prompt_tokens
from graphrag_bench.prompts import prompt, prompt_hash, render

_HERE = "graphrag_bench.graph"
_BETWEEN = "\n\n"
_APART = 2  # tokens that the line ends between two texts take, at most
_LEAST = 16  # tokens of a text below which its share says nothing
_WORDS = 0.6  # words asked for a token of room, so that few replies are cut
PROMPTS = prompt_hash(_HERE, "summary_system", "summary")


def summary_calls(settings: Mapping[str, Any], scale: Scale, members: int, bound: Bound) -> Calls:
    """Return a summary a cluster, layer by layer, where a cluster has so many members.

    Args:
        settings: of a tree builder.
        scale: of the corpus; the chunks are the first layer.
        members: nodes a cluster, on average; a bound on a cluster's tokens makes more clusters.
        bound: what the number of clusters is.
    """
    found, nodes, each = Calls(), scale.chunks, scale.chunk
    most, reply = settings["max_cluster_tokens"], settings["summary_tokens"]
    for _ in range(settings["max_layers"]):
        if nodes <= max(settings["stop_size"], 1):
            break
        clusters = max(-(-nodes // members), -(-round(nodes * each) // most) if most else 0)
        if clusters >= nodes:
            break
        whole = prompt_of(*(turn.text for turn in _turns("", reply)))
        asked = min(nodes * each / clusters + whole, scale.window)
        found += Calls.each(clusters, asked, reply, "about" if most else bound)
        nodes, each = clusters, reply
    return found


def tree_size(summaries: int, scale: Scale) -> tuple[int, int]:
    """Return the nodes and relationships of a tree with so many summaries; every node but the top has a parent."""
    return scale.chunks + summaries, scale.chunks + summaries


def by_model(model: ChatModel, max_tokens: int) -> Summarise:
    """Return a writer of summaries that asks the model.

    The texts stand in the order of their ids. Where they do not fit the window together, the tokens are shared: a text
    shorter than its equal share is given whole and leaves the rest to the others, which are cut at a word, their heads
    kept. A cluster of so many texts that a share would have fewer than 16 tokens gives only its first ones.

    Args:
        model: who writes.
        max_tokens: room for a summary; a reply is cut there.

    Raises:
        UserError: The window has no room for a text.
    """
    room = model.window - max_tokens - prompt_tokens(_turns("", max_tokens), model.count)
    if room < 2 * (_LEAST + _APART):
        raise UserError(
            f"The model's window of {model.window:,} tokens leaves {max(room, 0):,} for the texts to summarise.",
            "Take a model with a larger window, or lower graph.summary_tokens.",
        )

    async def summarise(clusters: Sequence[Cluster]) -> list[Summary]:
        fitted = [fit(cluster.texts, room, model) for cluster in clusters]
        replies = await model.ask_all(
            [
                Request(_turns(_BETWEEN.join(texts), max_tokens), max_tokens, "graph", "summary", cluster.subject)
                for cluster, texts in zip(clusters, fitted, strict=True)
            ]
        )
        return [
            Summary(
                reply.text.strip(),
                None if reply.failure is None else f"{reply.failure.kind}: {reply.failure.message}",
                texts != list(cluster.texts),
            )
            for cluster, texts, reply in zip(clusters, fitted, replies, strict=True)
        ]

    return summarise


def fit(texts: Sequence[str], room: int, model: ChatModel) -> list[str]:
    """Return the texts, cut by the rule of `by_model` where they have more than ``room`` tokens together."""
    if (
        sum(len(text.encode("utf-8", "surrogatepass")) + _APART for text in texts) <= room
    ):  # no token is shorter than a byte
        return list(texts)
    kept = list(texts)[: max(1, room // (_LEAST + _APART))]
    sizes = [model.count(text) for text in kept]
    left = room - _APART * len(kept)
    share = left
    for rank, size in enumerate(sorted(sizes)):
        share = left // (len(kept) - rank)
        if size > share:
            break
        left -= size
    else:
        return kept
    return [
        text if size <= share else cut_to_window(text, share, model.count)
        for text, size in zip(kept, sizes, strict=True)
    ]


def _turns(passages: str, max_tokens: int) -> tuple[Message, ...]:
    words = max(8, round(_WORDS * max_tokens))
    task = f"{passages}{_BETWEEN}{render(_HERE, 'summary', words=str(words))}"
    return (Message("system", prompt(_HERE, "summary_system")), Message("user", task))
