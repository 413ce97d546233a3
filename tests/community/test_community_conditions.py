"""Units and tokens of C0, C1, … and TS: Table 2 of the GraphRAG paper."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.community.conditions import Condition, conditions
from graphrag_bench.graph.builders.graphrag import build
from graphrag_bench.graph.communities import ReportRows


def words(text):
    return len(text.split())


def test_a_level_takes_the_leaves_above_it_and_leaves_out_what_has_no_report(small):
    graph = small.graph_of(6, [(0, 1), (2, 3), (4, 5)])
    hierarchy = small.hierarchy_of(
        6, (0, -1, [0, 1, 2, 3]), (0, -1, [4, 5]), (1, 0, [0, 1]), (1, 0, [2, 3]), (2, 2, [0]), (2, 2, [1])
    )
    rows = ReportRows()
    for text in ("one", "one two", "one two three", None, "1 2 3 4", "1 2 3 4 5"):
        rows.add(**({"failed": "timeout: 60 s"} if text is None else {"title": "t", "summary": "s", "text": text}))
    chunks = tuple(Chunk(n, "five words are in it", "", ("d",), 5) for n in range(4))
    assert conditions(graph.with_communities(hierarchy, rows.reports()), chunks, words) == [
        Condition("C0", 2, 3, 3 / 20),
        Condition("C1", 2, 5, 5 / 20, projected=1, missing=1),
        Condition("C2", 3, 11, 11 / 20, projected=1, missing=1),
        Condition("TS", 4, 20, 1.0),
    ]


@pytest.mark.shared
def test_the_christmas_carol(shared_data):
    folder = shared_data / "graphrag_christmas_carol"
    if not folder.is_dir():
        pytest.skip("the index is not here")
    corpus = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode()
    rows = [json.loads(line) for line in corpus.splitlines() if line]
    chunks = tuple(Chunk(n, row["text"], row["title"], (row["id"],), row["n_tokens"]) for n, row in enumerate(rows))
    found = conditions(build(chunks, path=str(folder)).graph, chunks, words)
    # its files hold 23, 65, 32 and 2 communities at the four levels
    assert [(row.name, row.units, row.units - row.projected) for row in found] == [
        ("C0", 23, 23), ("C1", 76, 65), ("C2", 97, 32), ("C3", 98, 2), ("TS", 42, 42),
    ]  # fmt: skip
    assert [row.tokens for row in found] == [*sorted(row.tokens for row in found[:4]), found[-1].tokens]


def test_figure_3_is_read_from_the_cells(tmp_path):
    file = Path(__file__).parents[2] / "scripts" / "graphrag_figure3.py"
    spec = importlib.util.spec_from_file_location("graphrag_figure3", file)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for size, rounds, entities in ((1200, 0, 9), (600, 1, 20)):
        cell = tmp_path / f"{size}-{rounds}"
        cell.mkdir()
        said = ["output=x", f"chunking.size={size}", f"graph.gleaning={rounds}"]
        (cell / "run.json").write_text(json.dumps({"overrides": said}))
        spent = {"calls": 4, "prompt_tokens": 30, "completion_tokens": 12}
        built = {
            "extraction": {"chunks": 4, "entities": entities, "spent": spent},
            "graph": {"nodes": 7, "relationships": 3},
        }
        (cell / "costs.json").write_text(json.dumps({"artifacts": built}))
    assert script.rows(tmp_path) == [(600, 1, 4, 20, 7, 3, 4, 42), (1200, 0, 4, 9, 7, 3, 4, 42)]
