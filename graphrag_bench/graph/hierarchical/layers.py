"""The layers of HiRAG's index: cluster the entities, sum each cluster up, go on with the summaries, until the rule says stop."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import EntityRecord
from graphrag_bench.graph.hierarchical.sparsity import cluster_sparsity
from graphrag_bench.graph.hierarchical.summaries import Group, Summarise, line
from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.graph.tree.clustering import Step, partition
from graphrag_bench.llm.window import estimate_tokens

_DIGITS = 6


@dataclass(frozen=True)
class Shape:
    """What ends the layers.

    Attributes:
        max_change: the share by which a layer's sparsity must differ from the one before, for it to be summed up.
        max_sparsity: a sparsity from which a layer is not summed up; None for no such bound.
        max_layers: layers of summaries at most.
        stop_size: a layer of at most so many nodes is the top.
        max_cluster_tokens: texts of one cluster at most; None for no bound.
        max_depth: how often a cluster beyond that is clustered again.
    """

    max_change: float
    max_sparsity: float | None
    max_layers: int
    stop_size: int
    max_cluster_tokens: int | None
    max_depth: int


@dataclass
class Layers:
    """The entities of all layers, in the making and made.

    Attributes:
        entities: those of layer 0, then the summaries, layer by layer.
        layer: of each.
        members: (summary, member) pairs.
        facts: what a layer was, one entry a layer that was clustered.
        stopped: why no further layer was made.
        failed: by cluster, why it has no summary.
        cut: clusters whose members did not all fit the model's window.
        seconds: spent clustering.
    """

    entities: list[EntityRecord]
    layer: list[int]
    members: list[tuple[int, int]] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    cut: int = 0
    seconds: float = 0.0

    def account(self) -> dict[str, Any]:
        """Return the facts to record: nodes by layer, sparsity and its change by clustered layer, and why it ended."""
        sizes = Counter(self.layer)
        named = {f"layer_{name}": [fact[name] for fact in self.facts] for name in ("nodes", "clusters", "passed_up")}
        return {
            "layers": [sizes[number] for number in sorted(sizes)],
            "sparsity": [fact["sparsity"] for fact in self.facts],
            "sparsity_change": [fact["change"] for fact in self.facts],
            **named,
            "stopped": self.stopped,
            "cut_clusters": self.cut,
            "clustering_seconds": round(self.seconds, 3),
        }


async def grow(
    entities: Sequence[EntityRecord], embedder: Embedder, step: Step, summarise: Summarise, shape: Shape
) -> Layers:
    """Put layers of summary entities above the given ones.

    A layer's nodes are clustered by the embeddings of their descriptions (a node without one, of its name). Before it is
    summed up its sparsity is compared with that of the layer before: HiRAG's stop rule. A summary is linked to every member
    of its cluster. A node in no cluster of two or more goes on to the next layer as itself, and so does one all of whose
    clusters' summaries failed.

    Args:
        entities: layer 0.
        embedder: embeds descriptions.
        step: how nodes are clustered.
        summarise: writes the summaries of a layer.
        shape: what ends the layers.

    Raises:
        UserError: Summaries were asked for, and every one failed.
    """
    made = Layers(list(entities), [0] * len(entities))
    vectors = await _embedded(made.entities, embedder) if made.entities else np.empty((0, 1), np.float32)
    taken = {phrase_key(entity.name) for entity in entities}
    current = list(range(len(entities)))
    before: float | None = None
    while not made.stopped:
        number = len(made.facts) + 1
        if number > shape.max_layers:
            made.stopped = f"max_layers: {shape.max_layers} layers of summaries"
        elif len(current) <= max(shape.stop_size, 1):
            made.stopped = f"stop_size: a layer of {len(current)}"
        if made.stopped:
            break
        begun = time.perf_counter()
        sizes = [estimate_tokens(line(made.entities[node])) for node in current]
        parts = await asyncio.to_thread(
            partition, step, vectors[np.array(current)], sizes, shape.max_cluster_tokens, shape.max_depth
        )
        made.seconds += time.perf_counter() - begun
        sparsity = cluster_sparsity(map(len, parts), len(current))
        change = _change(before, sparsity)
        wanted = [tuple(current[place] for place in part) for part in parts if len(part) > 1]
        alone = len(set(current).difference(*wanted))
        made.facts.append(
            {
                "nodes": len(current), "sparsity": round(sparsity, _DIGITS), "clusters": len(wanted), "passed_up": alone,
                "change": None if change is None or change == inf else round(change, _DIGITS),
            }
        )  # fmt: skip
        made.stopped = _reason(shape, sparsity, change, wanted)
        if made.stopped:
            break
        left = len(current)
        current, vectors = await _summed_up(made, number, current, wanted, vectors, embedder, summarise, taken)
        before = sparsity
        if len(current) >= left:
            made.stopped = f"no smaller: the next layer would have {len(current)} nodes of {left}"
    if made.failed and len(made.entities) == len(entities):
        kinds = Counter(reason.split(":")[0] for reason in made.failed.values())
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        raise UserError(
            f"None of the {len(made.failed)} clusters asked for could be summed up: {told}.",
            "Mend the model or its server and run again with execution.retry_failed=true.",
        )
    return made


def _change(before: float | None, now: float) -> float | None:
    if before is None:
        return None
    return abs(now - before) / abs(before) if before else (0.0 if now == before else inf)


def _reason(shape: Shape, sparsity: float, change: float | None, wanted: Sequence[Any]) -> str:
    if not wanted:
        return "no cluster of two or more"
    if shape.max_sparsity is not None and sparsity >= shape.max_sparsity:
        return f"max_sparsity: {sparsity:.4f}"
    if change is not None and change <= shape.max_change:
        return f"max_change: sparsity changed by {change:.4f}"
    return ""


async def _summed_up(
    made: Layers,
    number: int,
    current: Sequence[int],
    wanted: Sequence[tuple[int, ...]],
    vectors: NDArray[Any],
    embedder: Embedder,
    summarise: Summarise,
    taken: set[str],
) -> tuple[list[int], NDArray[Any]]:
    """Add the summaries of a layer; return the nodes of the next one, and all vectors."""
    groups = [
        Group(f"layer {number} cluster {at}", tuple(made.entities[n] for n in members), vectors[np.array(members)])
        for at, members in enumerate(wanted)
    ]
    first = len(made.entities)
    held: set[int] = set()
    for group, members, written in zip(groups, wanted, await summarise(groups), strict=True):
        made.cut += written.cut
        if written.failure is not None:
            made.failed[group.subject] = written.failure
            continue
        held.update(members)
        for entity in written.entities:
            made.members.extend((len(made.entities), member) for member in members)
            made.entities.append(entity._replace(name=_new(entity.name, number, taken)))
            made.layer.append(number)
    if len(made.entities) > first:
        vectors = np.concatenate([vectors, await _embedded(made.entities[first:], embedder)])
    return [*(node for node in current if node not in held), *range(first, len(made.entities))], vectors


def _new(name: str, number: int, taken: set[str]) -> str:
    """Return a name that no other node has: the layer is said where it is taken, and then a number."""
    found, more = name, 1
    while phrase_key(found) in taken:
        found = f"{name} (layer {number})" if more == 1 else f"{name} (layer {number}, {more})"
        more += 1
    taken.add(phrase_key(found))
    return found


async def _embedded(entities: Sequence[EntityRecord], embedder: Embedder) -> NDArray[Any]:
    texts = [entity.description or entity.name for entity in entities]
    return np.asarray(await asyncio.to_thread(embedder.embed, texts, "passage"))
