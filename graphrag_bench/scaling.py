"""How large everything in a cell is, as far as the store says, and else is likely to be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.config.schema import filled
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.llm.estimate import Scale, tokens_of
from graphrag_bench.registry import REGISTRY

_NODES, _RELATIONSHIPS = 9, 10  # a passage: 8 to 10 nodes, 8 to 13 facts on the graphs of models and OpenIE measured
_NODES_A_COMMUNITY = 4  # hierarchical Leiden, all levels together: 3.5 to 5 nodes a community on the graphs measured
_LEVELS = 2  # of which a node is in communities


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
    else:
        nodes, relationships = _NODES * scale.chunks, _RELATIONSHIPS * scale.chunks
    return replace(scale, nodes=nodes, relationships=relationships)


def _divided(run: CellRun, scale: Scale) -> Scale:
    """Add the communities: those of the hierarchy, or as many as so many nodes usually have."""
    stages, store = run.stages, run.session.store
    reporter = stages.reporter()
    room = filled(run.config["community"], reporter.settings).get("report_tokens") if reporter else None
    scale = replace(scale, report_tokens=min(scale.report_tokens, room or scale.report_tokens))
    found = store.find(stages.hierarchy_spec() if stages.clusterer() else stages.graph_spec())
    if found is None:
        communities = -(-scale.nodes // _NODES_A_COMMUNITY)
        return replace(scale, communities=communities, memberships=_LEVELS * scale.nodes, measured=False)
    hierarchy = Hierarchy.open(found.path)
    levels = range(int(hierarchy.level.max(initial=-1)) + 1)
    return replace(
        scale,
        communities=len(hierarchy),
        up_to=tuple(int((hierarchy.level <= level).sum()) for level in levels),
        at=tuple(len(hierarchy.at(level)) for level in levels),
        memberships=int(hierarchy.members.nnz),
    )


def _chunked(run: CellRun) -> tuple[int, int]:
    """Return how many chunks the corpus makes and their tokens; cutting is free, so it is done where it was not yet."""
    found = run.session.store.find(run.stages.chunk_spec())
    if found is not None:
        return int(found.facts["chunks"]), int(found.facts["tokens"])
    component = REGISTRY.get("chunker", run.config["chunking"]["chunker"])
    chunks: Sequence[Any] = component.call(run.dataset.documents, **filled(run.config["chunking"], component.settings))
    return len(chunks), sum(chunk.tokens for chunk in chunks)
