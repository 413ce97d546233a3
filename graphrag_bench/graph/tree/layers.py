"""The layers of a tree: cluster, summarise, and go on with the summaries, until nothing is left to join."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphrag_bench.chunking.tokenizers import Tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.graph.tree.clustering import Step, partition

PROVIDES = ("node.text", "node.layer")


class Cluster(NamedTuple):
    """What a summary is wanted of.

    Attributes:
        subject: what it is called in the ledger.
        texts: its members' texts, in the order of their ids.
    """

    subject: str
    texts: tuple[str, ...]


class Summary(NamedTuple):
    """A summary, or why there is none (``kind: message``)."""

    text: str
    failure: str | None = None
    cut: bool = False  # some member was shortened to fit the model's window


Summarise = Callable[[Sequence[Cluster]], Awaitable[Sequence[Summary]]]


@dataclass(frozen=True)
class Shape:
    """What bounds a tree.

    Attributes:
        max_layers: layers of summaries at most.
        stop_size: a layer of at most so many nodes is the top.
        max_cluster_tokens: texts of one cluster at most; None for no bound.
        max_depth: how often a cluster beyond that is clustered again.
    """

    max_layers: int
    stop_size: int
    max_cluster_tokens: int | None
    max_depth: int = 5


@dataclass
class _Tree:
    """A tree in the making."""

    names: list[str]
    texts: list[str]
    layer: list[int]
    tokens: list[int]
    vectors: NDArray[Any]
    members: list[tuple[int, int]] = field(default_factory=list)  # (summary, child)
    clusters: list[int] = field(default_factory=list)  # by layer: of two or more nodes
    passed: list[int] = field(default_factory=list)  # by layer: nodes that go on as themselves
    failed: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    seconds: float = 0.0


async def grow(
    chunks: ChunkTable, embedder: Embedder, tokenizer: Tokenizer, step: Step, summarise: Summarise, shape: Shape
) -> Built:
    """Grow a tree over the chunks and return it as a graph.

    Node i is chunk i; the summaries follow, layer by layer, in the order of their clusters' members. A node in no cluster
    of two or more goes on to the next layer as itself; so does one all of whose clusters' summaries failed. Growing stops
    at ``max_layers``, at a layer of at most ``stop_size`` nodes, and where clustering or failures leave as many
    nodes as before.

    Args:
        chunks: the leaves.
        embedder: embeds leaves and summaries.
        tokenizer: counts the tokens of the bound on clusters.
        step: how nodes are clustered.
        summarise: writes the summaries of a layer.
        shape: the bounds.

    Raises:
        UserError: Summaries were asked for, and every one failed.
    """
    texts = [chunk.text for chunk in chunks]
    tree = _Tree(
        names=[chunk.title or f"chunk {chunk.id}" for chunk in chunks],
        texts=list(texts),
        layer=[0] * len(texts),
        tokens=[len(tokenizer.starts(text)) for text in texts],
        vectors=await asyncio.to_thread(embedder.embed, texts, "passage"),
    )
    current = list(range(len(texts)))
    for number in range(1, shape.max_layers + 1):
        if len(current) <= max(shape.stop_size, 1):
            break
        begun = time.perf_counter()
        sizes = [tree.tokens[node] for node in current]
        vectors = tree.vectors[np.array(current)]
        parts = await asyncio.to_thread(partition, step, vectors, sizes, shape.max_cluster_tokens, shape.max_depth)
        tree.seconds += time.perf_counter() - begun
        wanted = [tuple(current[position] for position in part) for part in parts if len(part) > 1]
        alone = len(set(current).difference(*wanted))
        if len(wanted) + alone >= len(current):
            break
        before = len(current)
        current = await _summarised(tree, number, current, wanted, embedder, tokenizer, summarise)
        if len(current) >= before:
            break
    if tree.failed and len(tree.texts) == len(chunks):
        kinds = ", ".join(f"{count} {kind}" for kind, count in _kinds(tree).items())
        raise UserError(
            f"None of the {len(tree.failed)} summaries asked for could be had: {kinds}.",
            "Mend the model or its server and run again with execution.retry_failed=true.",
        )
    return _built(tree, len(chunks), len(current))


async def _summarised(
    tree: _Tree,
    number: int,
    current: Sequence[int],
    wanted: Sequence[tuple[int, ...]],
    embedder: Embedder,
    tokenizer: Tokenizer,
    summarise: Summarise,
) -> list[int]:
    """Add the summaries of a layer; return the nodes of the next one."""
    clusters = [
        Cluster(f"layer {number} cluster {at}", tuple(tree.texts[node] for node in members))
        for at, members in enumerate(wanted)
    ]
    summaries = await summarise(clusters)
    texts: list[str] = []
    held: set[int] = set()
    first = len(tree.texts)
    for at, (cluster, members, summary) in enumerate(zip(clusters, wanted, summaries, strict=True)):
        tree.cut += summary.cut
        if summary.failure is not None:
            tree.failed[cluster.subject] = summary.failure
            continue
        tree.members.extend((first + len(texts), member) for member in members)
        tree.names.append(f"summary {number}.{at}")
        texts.append(summary.text)
        held.update(members)
    if texts:
        tree.texts += texts
        tree.layer += [number] * len(texts)
        tree.tokens += [len(tokenizer.starts(text)) for text in texts]
        rows = await asyncio.to_thread(embedder.embed, texts, "passage")
        tree.vectors = np.concatenate([tree.vectors, rows])
    on = [node for node in current if node not in held]
    tree.clusters.append(len(wanted))
    tree.passed.append(len(on))
    return [*on, *range(first, len(tree.texts))]


def _built(tree: _Tree, n_chunks: int, top: int) -> Built:
    nodes = len(tree.texts)
    pairs = np.array(tree.members, dtype=np.int64).reshape(-1, 2)
    parents = np.bincount(pairs[:, 1], minlength=nodes) if nodes else np.zeros(0, np.int64)
    leaves = np.arange(n_chunks)
    count = len(pairs)
    graph = Graph(
        nodes=pa.table(
            {
                "name": pa.array(tree.names, pa.string()),
                "text": pa.array(tree.texts, pa.string()),
                "layer": pa.array(tree.layer, pa.int32()),
            }
        ),
        relationships=pa.table(
            {
                "source": pa.array(pairs[:, 0], pa.int32()),
                "target": pa.array(pairs[:, 1], pa.int32()),
                "kind": pa.array(["member"] * count, pa.string()),
                "name": pa.array(["summarises"] * count, pa.string()),
                "weight": pa.array(np.ones(count), pa.float32()),
            }
        ),
        node_chunk=incidence(leaves, leaves, (nodes, n_chunks)),
        relationship_chunk=incidence(np.empty(0, np.int64), np.empty(0, np.int64), (count, n_chunks)),
        attributes=frozenset(PROVIDES),
    )
    by_layer = Counter(tree.layer)
    facts = {
        "layers": [by_layer[layer] for layer in sorted(by_layer)],
        "clusters": tree.clusters,
        "passed_up": tree.passed,
        "top": top,
        "mean_parents": round(float(parents[parents > 0].mean()), 3) if (parents > 0).any() else 0.0,
        "failed": _kinds(tree),
        "cut": tree.cut,
        "clustering_seconds": round(tree.seconds, 3),
    }
    return Built(graph, facts, dict(tree.failed))


def _kinds(tree: _Tree) -> dict[str, int]:
    return dict(sorted(Counter(reason.split(":")[0] for reason in tree.failed.values()).items()))
