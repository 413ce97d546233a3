"""Small random graphs with everything that trips an operator: isolated nodes, loops, parallel relationships, synonyms."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.service import Chat


def graph_of(n, edges, node_chunk=(), edge_chunk=(), chunks=1):
    """Make a graph of (source, target, kind, weight) and pairs of (node, chunk) and (relationship, chunk)."""

    def pairs(found, rows):
        matrix = np.zeros((rows, chunks), dtype=np.float32)
        for row, column in found:
            matrix[row, column] = 1.0
        return sparse.csr_array(matrix)

    return Graph(
        nodes=pa.table({"name": pa.array([f"n{i}" for i in range(n)], pa.string())}),
        relationships=pa.table(
            {
                "source": pa.array([e[0] for e in edges], pa.int32()),
                "target": pa.array([e[1] for e in edges], pa.int32()),
                "kind": pa.array([e[2] for e in edges], pa.string()),
                "name": pa.array(["r"] * len(edges), pa.string()),
                "weight": pa.array([e[3] for e in edges], pa.float32()),
            }
        ),
        node_chunk=pairs(node_chunk, n),
        relationship_chunk=pairs(edge_chunk, len(edges)),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )


def random_graph(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    n, chunks = int(rng.integers(1, 10)), int(rng.integers(1, 6))
    edges = [
        (
            int(rng.integers(n)),
            int(rng.integers(n)),
            str(rng.choice(["fact", "fact", "synonym"])),
            float(rng.integers(1, 9)) / 4,
        )
        for _ in range(int(rng.integers(0, 13)))
    ]
    where = [
        (number, int(rng.integers(chunks))) for number, edge in enumerate(edges) if edge[2] == "fact" for _ in range(2)
    ]
    held = [(end, chunk) for number, chunk in where for end in edges[number][:2]]
    return graph_of(n, edges, held, where, chunks)


def random_rows(seed: int, n: int, size: int = 4) -> list[tuple[list[int], list[float]]]:
    """Rows of (ids, scores) over n elements: duplicates, ties and an empty row among them."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[list[int], list[float]]] = []
    for _ in range(size):
        count = int(rng.integers(0, 2 * n + 1)) if n else 0
        rows.append((rng.integers(0, max(n, 1), count).tolist(), (rng.integers(1, 5, count) / 4).tolist()))
    rows[seed % size] = ([], [])
    return rows


def naive(row) -> dict[int, float]:
    """The best score of each id of a row."""
    best: dict[int, float] = {}
    for identity, score in zip(*row, strict=True):
        best[identity] = max(score, best.get(identity, score))
    return best


def ranked(scores: dict[int, float], k: int | None = None) -> list[tuple[int, float]]:
    """(id, score), best first, ties by id."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


def pairs(row: Any) -> list[tuple[int, float]]:
    return list(zip(row.ids.tolist(), row.scores.tolist(), strict=True))


class Table:
    """An embedder that looks its vectors up; counts how often it is asked."""

    def __init__(self, vectors):
        self.vectors = {text: np.asarray(v, np.float32) / np.linalg.norm(v) for text, v in vectors.items()}
        self.dim = len(next(iter(self.vectors.values())))
        self.identity = {"backend": "table"}
        self.roles = []

    def embed(self, texts, role="passage"):
        self.roles.append(role)
        return np.stack([self.vectors[text] for text in texts]) if texts else np.empty((0, self.dim), np.float32)

    def long_texts(self, texts):
        return 0


@pytest.fixture(scope="session")
def small() -> SimpleNamespace:
    """The helpers of this folder, for tests in its sub-folders."""
    return SimpleNamespace(
        graph_of=graph_of,
        random_graph=random_graph,
        random_rows=random_rows,
        naive=naive,
        ranked=ranked,
        pairs=pairs,
        Table=Table,
    )


@pytest.fixture(scope="session")
def same() -> Callable[[Any, Any], None]:
    """Say that two rankings are equal to the last bit, row by row and in what failed."""

    def check(one, two):
        assert type(one) is type(two)
        assert [pairs(row) for row in one] == [pairs(row) for row in two]
        assert dict(one.failed) == dict(two.failed)

    return check


def told(triples, kind="fact"):
    """A graph of (subject, relation, object) in the order given: nodes by first mention, all in one chunk."""
    names = list(dict.fromkeys(end for subject, _, target in triples for end in (subject, target)))
    graph = graph_of(len(names), [(names.index(s), names.index(o), kind, 1.0) for s, _, o in triples])
    relations = graph.relationships.set_column(3, "name", pa.array([r for _, r, _ in triples], pa.string()))
    return replace(graph, nodes=pa.table({"name": pa.array(names, pa.string())}), relationships=relations)


def model_of(answer, window=8192):
    """A model that answers by a function of (last message, schema) with a text or JSON; its ``asked`` lists the messages."""
    asked = []

    def reply(messages, schema):
        asked.append(messages[-1].text)
        said = answer(messages[-1].text, schema)
        return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)

    model = Chat(Scripted.of(reply, window=window), attempts=1)
    model.asked = asked
    return model


@pytest.fixture(scope="session")
def asking() -> SimpleNamespace:
    """The helpers for operators that ask a model."""
    return SimpleNamespace(told=told, model_of=model_of)
