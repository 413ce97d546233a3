"""How large everything in a cell is, as far as the store says, and else is likely to be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.config.schema import filled
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.llm.estimate import Scale, tokens_of
from graphrag_bench.registry import REGISTRY

_NODES, _RELATIONSHIPS = 9, 10  # a passage: 8 to 10 nodes, 8 to 13 facts on the graphs of models and OpenIE measured
# Pieces of long texts speak of the same things again and again: of such, nodes and facts a thousand tokens. With descriptions
# the GraphRAG paper's two corpora have 8.4 and 9.2 nodes and 20 and 11 facts, a novel's index 10 and 19, the TKG of the unified
# paper's MultihopQA (its Table 13) 9 and 7; that corpus's KG, names alone, 25 and 26.
_LONG = 300  # tokens of a chunk from which it is a piece of a long text, and no passage of its own
_DESCRIBED_A_THOUSAND, _NAMED_A_THOUSAND = (9, 14), (25, 26)
_NODES_A_COMMUNITY = 4  # hierarchical Leiden, all levels together: 3.5 to 5 nodes a community on the graphs measured
_LEVELS = 2  # of which a node is in communities
# Communities that cover a graph of n nodes at level 0, 1, 2, 3: factor * n ** power. Fitted to four graphs in few pieces, the
# GraphRAG paper's two corpora (its Table 2: 8,564 and 15,754 nodes; 34 and 55, 367 and 555, 969 and 1,797, 1,310 and 2,142), a
# novel's index by its repository (529 nodes: 23, 76, 97, 98), and what rules make of the first corpus (3,830 nodes: 24, 225,
# 547, 589). A graph in many pieces has more at level 0, at least one a piece.
_COVER = ((4.5, 0.25), (1.93, 0.586), (0.441, 0.86), (0.328, 0.909))
_COARSER = 1.2  # of all communities down to a level, how many there are for each that covers the graph there: 1.0 to 1.25
_REPORT = 0.3  # of the room a report is given, what it takes: 570 to 780 of 2,000 tokens in the paper's Table 2


def scale_of(run: CellRun) -> Scale:
    """Return how large everything is, as far as the store says, and else will be."""
    chunks, tokens = _chunked(run)
    text = [tokens_of(question.text) for question in run.asked]
    carried = run.cell.ground.attributes
    scale = Scale(
        chunks=chunks,
        tokens=tokens,
        described="node.description" in carried,
        passages="node.text" in carried,
        questions=len(text),
        question_tokens=sum(text),
        window=int(run.session.backend(run.config).window) if run.uses_model() else 0,
    )
    if run.stages.builder() is None:
        return scale
    scale = _sized(run, scale)
    return _divided(run, scale) if "community" in carried else scale


def _sized(run: CellRun, scale: Scale) -> Scale:
    """Add the nodes and relationships: of the graph, or by the builder's rule, or by the extraction, or by the passages."""
    stages, store = run.stages, run.session.store
    builder = stages.builder()
    assert builder is not None
    if found := store.find(stages.graph_spec()):
        facts = found.facts
        return replace(scale, nodes=facts["nodes"], relationships=facts["relationships"], measured=True)
    size: Callable[[Mapping[str, Any], Scale], tuple[int, int]] | None = builder.extra.get("size")
    if size is not None:
        nodes, relationships = size(filled(run.config["graph"], builder.settings), scale)
    elif scale.passages:
        nodes, relationships = scale.chunks, _RELATIONSHIPS * scale.chunks
    elif stages.extracts() and (extracted := store.find(stages.extraction_spec())):
        nodes, relationships = extracted.facts["entities"], extracted.facts["triples"]
    elif scale.chunk > _LONG:
        rates = _DESCRIBED_A_THOUSAND if scale.described else _NAMED_A_THOUSAND
        nodes, relationships = (max(rate * scale.tokens // 1000, scale.chunks) for rate in rates)
    else:
        nodes, relationships = _NODES * scale.chunks, _RELATIONSHIPS * scale.chunks
    return replace(scale, nodes=nodes, relationships=relationships)


def _divided(run: CellRun, scale: Scale) -> Scale:
    """Add the communities: those of the hierarchy, or as many as so many nodes usually have."""
    stages, store = run.stages, run.session.store
    reporter = stages.reporter()
    room = filled(run.config["community"], reporter.settings).get("report_tokens") if reporter else None
    usual = scale.report_tokens if room is None else min(max(scale.report_tokens, round(_REPORT * room)), room)
    scale = replace(scale, report_tokens=_written(run) or usual)
    found = store.find(stages.hierarchy_spec() if stages.clusterer() else stages.graph_spec())
    if found is None:
        communities = -(-scale.nodes // _NODES_A_COMMUNITY)
        at = covers(scale.nodes, communities)
        return replace(
            scale,
            communities=communities,
            up_to=(*(min(round(_COARSER * count), communities) for count in at[:-1]), communities),
            at=at,
            memberships=_LEVELS * scale.nodes,
            measured=False,
        )
    hierarchy = Hierarchy.open(found.path)
    levels = range(int(hierarchy.level.max(initial=-1)) + 1)
    return replace(
        scale,
        communities=len(hierarchy),
        up_to=tuple(int((hierarchy.level <= level).sum()) for level in levels),
        at=tuple(len(hierarchy.at(level)) for level in levels),
        memberships=int(hierarchy.members.nnz),
    )


def covers(nodes: int, communities: int) -> tuple[int, ...]:
    """Return about how many communities cover a graph of so many nodes, level by level, of so many communities in all."""
    found = [min(round(factor * nodes**power), communities) for factor, power in _COVER]
    return tuple(max(found[: level + 1]) for level in range(len(found)))


def _written(run: CellRun) -> int:
    """Return the mean tokens of the reports, where they are written; else 0."""
    stages = run.stages
    found = run.session.store.find(stages.reports_spec() if stages.reporter() else stages.graph_spec())
    if found is None or not (found.path / "reports.parquet").is_file():
        return 0
    texts = [text for text in Reports.open(found.path).table["text"].to_pylist() if text]
    return round(sum(map(tokens_of, texts)) / len(texts)) if texts else 0


def _chunked(run: CellRun) -> tuple[int, int]:
    """Return how many chunks the corpus makes and their tokens; cutting is free, so it is done where it was not yet."""
    found = run.session.store.find(run.stages.chunk_spec())
    if found is not None:
        return int(found.facts["chunks"]), int(found.facts["tokens"])
    component = REGISTRY.get("chunker", run.config["chunking"]["chunker"])
    chunks: Sequence[Any] = component.call(run.dataset.documents, **filled(run.config["chunking"], component.settings))
    return len(chunks), sum(chunk.tokens for chunk in chunks)
