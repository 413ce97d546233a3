"""What every operator that asks no model keeps to, one table of operators for all the properties."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, Reports
from graphrag_bench.index.hierarchy import HierarchyIndex, community_layers
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.pipeline.walks import Subgraphs
from operators.chunk.aggregator import aggregator as chunk_aggregator
from operators.chunk.all import every
from operators.chunk.from_rel import from_rel
from operators.chunk.fuse import fuse
from operators.chunk.near_nodes import near_nodes
from operators.chunk.occurrence import occurrence
from operators.chunk.of_nodes import of_nodes
from operators.chunk.otherwise import otherwise
from operators.chunk.ppr import ppr as chunk_ppr
from operators.chunk.vdb import vdb as chunk_vdb
from operators.community.entity import entity
from operators.community.hierarchical import hierarchical
from operators.community.layer import layer
from operators.community.vdb import vdb as community_vdb
from operators.node.ends import ends
from operators.node.exact import exact
from operators.node.link import link
from operators.node.onehop import onehop as node_onehop
from operators.node.rel_node import rel_node
from operators.node.top_in_community import top_in_community
from operators.node.typed_vdb import typed_vdb
from operators.node.vdb import vdb as node_vdb
from operators.relationship.aggregator import aggregator as relationship_aggregator
from operators.relationship.link import link as relationship_link
from operators.relationship.onehop import onehop as relationship_onehop
from operators.relationship.similar import similar
from operators.relationship.vdb import vdb as relationship_vdb
from operators.subgraph.bridge import bridge
from operators.subgraph.khop_path import khop_path
from operators.subgraph.steiner import steiner

# k is what limits the result, or each text's part of it
OPERATORS = {
    "node.vdb": lambda s, k: node_vdb(s.questions, s.vectors(NodeVectors, s.graph.n_nodes), top_k=k),
    "node.vdb entities": lambda s, k: node_vdb(
        s.questions, s.vectors(NodeVectors, s.graph.n_nodes), by="entities", top_k=k
    ),
    "node.link": lambda s, k: link(s.graph, s.questions, s.vectors(NodeVectors, s.graph.n_nodes), top_k=k),
    "node.typed_vdb": lambda s, k: typed_vdb(
        s.graph, s.questions, s.vectors(NodeVectors, s.graph.n_nodes), types=["Even"], top_k=k
    ),
    "node.exact": lambda s, k: exact(s.graph, s.questions).nodes,
    "node.ends mean": lambda s, k: ends(s.graph, s.relationships, top_k=k),
    "node.ends sum": lambda s, k: ends(s.graph, s.relationships, rule="sum", weight="score", top_k=k),
    "node.top_in_community": lambda s, k: top_in_community(
        s.graph, s.nodes, entity(s.graph, s.nodes, rank="count"), top_m=k
    ),
    "node.rel_node order": lambda s, k: rel_node(s.graph, s.relationships, top_k=k),
    "node.rel_node degree": lambda s, k: rel_node(s.graph, s.relationships, rank="degree", top_k=k),
    "node.rel_node score": lambda s, k: rel_node(s.graph, s.relationships, rank="score", top_k=k),
    "node.onehop": lambda s, k: node_onehop(s.graph, s.nodes, top_k=k),
    "node.onehop seeds": lambda s, k: node_onehop(s.graph, s.nodes, include_seeds=True, top_k=k),
    "node.onehop given": lambda s, k: node_onehop(s.graph, s.nodes, s.relationships, top_k=k),
    "relationship.vdb": lambda s, k: relationship_vdb(
        s.graph, s.questions, s.vectors(RelationshipVectors, s.graph.n_relationships), top_k=k
    ),
    "relationship.link": lambda s, k: relationship_link(
        s.graph, s.questions, s.vectors(RelationshipVectors, s.graph.n_relationships), top_k=k
    ),
    "relationship.similar": lambda s, k: similar(
        s.questions, s.vectors(RelationshipVectors, s.graph.n_relationships), s.relationships, top_k=k
    ),
    "relationship.onehop degree": lambda s, k: relationship_onehop(s.graph, s.nodes, top_k=k),
    "relationship.onehop score": lambda s, k: relationship_onehop(s.graph, s.nodes, rank="score", top_k=k),
    "relationship.onehop weight": lambda s, k: relationship_onehop(s.graph, s.nodes, rank="weight", top_k=k),
    "relationship.onehop both": lambda s, k: relationship_onehop(s.graph, s.nodes, ends="both", top_k=k),
    "relationship.onehop source": lambda s, k: relationship_onehop(s.graph, s.nodes, ends="source", top_k=k),
    "relationship.aggregator": lambda s, k: relationship_aggregator(s.graph, s.nodes, top_k=k),
    "chunk.aggregator": lambda s, k: chunk_aggregator(s.graph, s.relationships, top_k=k),
    "chunk.vdb": lambda s, k: chunk_vdb(s.questions, s.vectors(ChunkVectors, s.graph.n_chunks), top_k=k),
    "chunk.near_nodes": lambda s, k: near_nodes(
        s.graph, s.questions, s.nodes, s.vectors(ChunkVectors, s.graph.n_chunks), top_k=k
    ),
    "chunk.ppr": lambda s, k: chunk_ppr(s.graph, s.nodes, top_k=k),
    "chunk.ppr chunks": lambda s, k: chunk_ppr(s.graph, s.nodes, from_rel(s.graph, s.relationships), top_k=k),
    "chunk.otherwise": lambda s, k: otherwise(
        of_nodes(s.graph, s.nodes), from_rel(s.graph, s.relationships), top_k=k
    ),
    "chunk.from_rel": lambda s, k: from_rel(s.graph, s.relationships, top_k=k),
    "chunk.occurrence": lambda s, k: occurrence(s.graph, s.relationships, top_k=k),
    "chunk.occurrence nodes": lambda s, k: occurrence(s.graph, None, s.nodes, rank="nodes", top_k=k),
    "chunk.of_nodes order": lambda s, k: of_nodes(s.graph, s.nodes, top_k=k),
    "chunk.of_nodes sum": lambda s, k: of_nodes(s.graph, s.nodes, rule="sum", top_k=k),
    "chunk.of_nodes max": lambda s, k: of_nodes(s.graph, s.nodes, rule="max", top_k=k),
    "chunk.fuse rrf": lambda s, k: fuse(of_nodes(s.graph, s.nodes), from_rel(s.graph, s.relationships), top_k=k),
    "chunk.fuse sum_normalised": lambda s, k: fuse(
        of_nodes(s.graph, s.nodes), from_rel(s.graph, s.relationships), rule="sum_normalised", top_k=k
    ),
    "chunk.all": lambda s, k: every(s.chunks, s.questions, top_k=k),
    "community.entity rating": lambda s, k: entity(s.graph, s.nodes, max_level=1, top_k=k),
    "community.entity count": lambda s, k: entity(s.graph, s.nodes, rank="count", max_level=None, top_k=k),
    "community.layer up_to": lambda s, k: layer(s.graph, s.questions, level=1, top_k=k),
    "community.layer at": lambda s, k: layer(s.graph, s.questions, level=1, mode="at", min_rating=2.0, top_k=k),
    "community.vdb": lambda s, k: community_vdb(
        s.graph, s.questions, s.vectors(CommunityVectors, s.graph.n_communities), top_k=k
    ),
    "community.hierarchical nodes": lambda s, k: hierarchical(s.graph, s.questions, s.index, top_k=k).nodes,
    "community.hierarchical one layer": lambda s, k: hierarchical(
        s.graph, s.questions, s.index, max_layer=1, top_k=k
    ).communities,
    "community.hierarchical entities": lambda s, k: hierarchical(
        s.graph, s.questions, s.index, by="entities", top_k=k
    ).communities,
    "community.hierarchical entities pooled": lambda s, k: hierarchical(
        s.graph, s.questions, s.index, by="entities", pooled=True, top_k=k
    ).communities,
    "subgraph.bridge": lambda s, k: bridge(s.graph, s.nodes),
    "subgraph.khop_path": lambda s, k: khop_path(s.graph, s.nodes, hops=4, max_paths=k),
    "subgraph.khop_path per_pair": lambda s, k: khop_path(s.graph, s.nodes, hops=4, max_paths=k, per_pair=3),
    "subgraph.steiner": lambda s, k: steiner(s.graph, s.nodes, s.relationships),
    "subgraph.steiner rustworkx": lambda s, k: steiner(s.graph, s.nodes, s.relationships, solver="rustworkx"),
}
_BY_QUESTION = ("vdb", "link", "all", "layer", "hierarchical", "exact", "near_nodes", "similar")
READS_QUESTIONS = {n for n in OPERATORS if n.split()[0].endswith(_BY_QUESTION)}
K_IS_OF_PARTS = {  # of a text's hits, of a community's members; or there is none
    "node.link", "node.exact", "node.top_in_community", "subgraph.bridge", "subgraph.steiner", "subgraph.steiner rustworkx",
}  # fmt: skip
MENTIONS = ["a", "b", "c", "n0", "N1"]  # two of them are names of nodes
each = pytest.mark.parametrize("name", OPERATORS)


@dataclass(frozen=True)
class Scene:
    """A graph with communities and reports, and what a batch of questions found."""

    small: object
    graph: object
    questions: Questions
    node_rows: list
    relationship_rows: list

    @property
    def nodes(self):
        return Nodes.of_rows(self.node_rows)

    @property
    def relationships(self):
        return Relationships.of_rows(self.relationship_rows)

    @property
    def chunks(self):
        return tuple(Chunk(number, "text", "", (), 1) for number in range(self.graph.n_chunks))

    @property
    def index(self):
        nodes, communities = self.vectors(NodeVectors, self.graph.n_nodes), self.vectors(CommunityVectors, 9)
        return HierarchyIndex(nodes, communities, community_layers(self.graph))

    def vectors(self, kind, n):
        """Vectors with twins among them; every text has a vector of its own."""
        rng = np.random.default_rng(5)
        texts = {t: rng.normal(size=4) for t in [f"about q{i}?" for i in range(8)] + list(MENTIONS)}
        matrix = rng.normal(size=(n, 4))
        matrix[n // 2 :] = matrix[: n - n // 2]
        matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
        return kind(matrix.astype(np.float32), self.small.Table(texts))

    def take(self, rows):
        """The same for some of the questions."""
        return replace(
            self,
            questions=replace(self.questions.take(rows), entities=tuple(self.questions.entities[n] for n in rows)),
            node_rows=[self.node_rows[n] for n in rows],
            relationship_rows=[self.relationship_rows[n] for n in rows],
        )


def with_communities(graph, seed):
    """Two levels: the nodes split in three, then in six; the first report failed, the second has no rating."""
    rng = np.random.default_rng(seed)
    n = graph.n_nodes
    types = pa.array([("even", "odd")[node % 2] for node in range(n)], pa.string())
    graph = replace(graph, nodes=graph.nodes.append_column("type", types))
    fine = rng.integers(0, 6, n)
    members = np.zeros((9, n), np.float32)
    members[fine // 2, np.arange(n)] = 1
    members[3 + fine, np.arange(n)] = 1
    level = np.repeat([0, 1], [3, 6]).astype(np.int32)
    parent = np.array([-1, -1, -1, 0, 0, 1, 1, 2, 2], np.int32)
    columns = {
        "title": ["t"] * 9, "summary": ["s"] * 9, "text": ["t s"] * 9,
        "rating": [5.0, None, *rng.integers(0, 4, 7).astype(float).tolist()],
        "rating_reason": [""] * 9, "failed": ["parse: no"] + [None] * 8,
    }  # fmt: skip
    return graph.with_communities(
        Hierarchy(level, parent, sparse.csr_array(members)), Reports(pa.table(columns, schema=REPORT_SCHEMA))
    )


def scene_of(small, graph, node_rows, relationship_rows, seed=0, failed=None):
    size = len(node_rows)
    ids = tuple(f"q{n}" for n in range(size))
    rng = np.random.default_rng(seed)
    entities = tuple(tuple(rng.choice(MENTIONS, int(rng.integers(0, 4))).tolist()) for _ in ids)
    questions = Questions(ids, tuple(f"about {i}?" for i in ids), entities, failed=failed or {})
    return Scene(small, with_communities(graph, seed), questions, node_rows, relationship_rows)


def random_scene(small, seed, failed=None):
    graph = small.random_graph(seed)
    nodes, relationships = small.random_rows(seed, graph.n_nodes), small.random_rows(seed + 1, graph.n_relationships)
    return scene_of(small, graph, nodes, relationships, seed, failed)


def plain(value):
    """A result as lists, for any kind of value."""
    if isinstance(value, Subgraphs):
        return [list(row) for row in value.rows]
    return [list(zip(row.ids.tolist(), row.scores.tolist(), strict=True)) for row in value]


@each
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)), k=st.sampled_from([1, 2, 50]))
def test_a_question_does_not_depend_on_those_beside_it(small, name, seed, order, k):
    scene = random_scene(small, seed)
    whole = plain(OPERATORS[name](scene, k))
    assert plain(OPERATORS[name](scene.take(order), k)) == [whole[n] for n in order]
    assert [plain(OPERATORS[name](scene.take([n]), k))[0] for n in range(4)] == whole
    assert OPERATORS[name](scene.take([]), k).size == 0


@each
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_rows_are_best_first_ties_by_id_each_once(small, name, seed):
    scene = random_scene(small, seed)
    value = OPERATORS[name](scene, 3)
    if isinstance(value, Subgraphs):
        for row in value.rows:
            assert [p.score for p in row] == sorted((p.score for p in row), reverse=True)
            for path in row:
                used = {n for r in path.relationships for n in (scene.graph.sources[r], scene.graph.targets[r])}
                assert used <= set(path.nodes)
                assert len(path.directions) == len(path.relationships)
        return
    for row in plain(value):
        assert row == sorted(row, key=lambda item: (-item[1], item[0]))
        assert len({identity for identity, _ in row}) == len(row)
        assert np.isfinite([score for _, score in row]).all()


@each
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_duplicates_count_once_and_a_larger_k_only_adds(small, name, seed):
    scene = random_scene(small, seed)
    doubled = replace(
        scene,
        node_rows=[(2 * ids, 2 * scores) for ids, scores in scene.node_rows],
        relationship_rows=[(2 * ids, 2 * scores) for ids, scores in scene.relationship_rows],
    )
    whole = plain(OPERATORS[name](scene, 1000))
    assert plain(OPERATORS[name](doubled, 1000)) == whole
    if name not in K_IS_OF_PARTS and "entities" not in name:
        assert [row[:2] for row in whole] == plain(OPERATORS[name](scene, 2))


@each
def test_a_failed_question_is_empty_and_empty_inputs_give_nothing(small, name):
    scene = random_scene(small, 7, failed={1: "timeout: 60 s"})
    if name in READS_QUESTIONS:
        assert plain(OPERATORS[name](scene, 5))[1] == []
    else:
        nothing = replace(scene, node_rows=[([], [])] * 4, relationship_rows=[([], [])] * 4)
        assert plain(OPERATORS[name](nothing, 5)) == [[]] * 4


@each
@pytest.mark.parametrize("edges", [[], [(0, 0, "fact", 1.0)]])
def test_one_node_with_and_without_a_loop(small, name, edges):
    graph = small.graph_of(1, edges, [(0, 0)], [(0, 0)] if edges else [])
    rows = [([0], [1.0])], [([0], [1.0]) if edges else ([], [])]
    found = plain(OPERATORS[name](scene_of(small, graph, *rows), 5))
    assert len(found) == 1
    assert len(found[0]) <= 9


@each
def test_an_isolated_node_is_at_home_everywhere(small, name):
    graph = small.graph_of(4, [(0, 1, "fact", 1.0), (1, 2, "synonym", 1.0)], [(0, 0), (1, 0)], [(0, 0)])
    alone = plain(OPERATORS[name](scene_of(small, graph, [([3], [1.0])], [([], [])]), 5))
    expected = [(3, 1.0)] if name in ("node.onehop seeds", "node.top_in_community") else []
    if name.split()[0] not in {n.split()[0] for n in READS_QUESTIONS} | {"community.entity", "subgraph.steiner"}:
        assert alone == [expected]
    elif name.startswith("subgraph.steiner"):
        assert [path.nodes for path in alone[0]] == [(3,)]
    both = plain(OPERATORS[name](scene_of(small, graph, [([3, 0], [1.0, 0.5])], [([0], [1.0])]), 5))
    assert len(both) == 1
