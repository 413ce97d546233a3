"""What of a graph's elements is embedded: one text a node, a relationship, a community."""

from typing import Literal

from graphrag_bench.graph.graph import Graph

NodeText = Literal["auto", "name", "description", "name+description"]
RelationshipText = Literal["auto", "name", "description", "triple"]


def node_texts(graph: Graph, how: NodeText) -> list[str]:
    """Return each node's text.

    auto: the passage or summary of a passage graph's or tree's node; the name of a KG's; name and description where there
    are descriptions, as every implementation has it (``description`` gives the unified paper's variant). A node without a
    description is embedded by its name.
    """
    if "node.text" in graph.attributes:
        return graph.column("nodes", "text")
    names = graph.column("nodes", "name")
    if how == "name" or (how == "auto" and "node.description" not in graph.attributes):
        return names
    described = graph.column("nodes", "description")
    if how == "description":
        return [text or name for name, text in zip(names, described, strict=True)]
    return [f"{name}: {text}" if text else name for name, text in zip(names, described, strict=True)]


def relationship_texts(graph: Graph, how: RelationshipText) -> list[str]:
    """Return each relationship's text.

    triple: the two ends with what joins them, and the description. auto: the same, behind the keywords where there are some
    (LightRAG).
    """
    names = graph.column("relationships", "name")
    described = graph.column("relationships", "description")
    if how == "name":
        return [name or text for name, text in zip(names, described, strict=True)]
    if how == "description":
        return [text or name for name, text in zip(names, described, strict=True)]
    keywords = graph.column("relationships", "keywords") if how == "auto" else [""] * len(names)
    ends = graph.column("nodes", "name")
    rows = zip(graph.sources.tolist(), graph.targets.tolist(), names, described, keywords, strict=True)
    return [
        (f"{words}\n" if words else "")
        + " ".join(filter(None, [ends[source], name, ends[target]]))
        + (f": {text}" if text else "")
        for source, target, name, text, words in rows
    ]


def community_texts(graph: Graph, how: Literal["summary", "report"]) -> list[str]:
    """Return each community's text: title and summary, or the whole report; empty where there is no report."""
    if graph.reports is None:
        raise ValueError("the graph has no reports")
    table = graph.reports.table
    if how == "report":
        return [text or "" for text in table["text"].to_pylist()]
    pairs = zip(table["title"].to_pylist(), table["summary"].to_pylist(), strict=True)
    return [f"{title}: {summary}" if title and summary else title or summary or "" for title, summary in pairs]
