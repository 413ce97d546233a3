"""The conditions of the GraphRAG paper: the same prompts, the same window, which one setting governs."""

import pytest

from graphrag_bench.cells import cells
from graphrag_bench.config import sources

GLOBAL = ("graphrag_c0", "graphrag_c1", "graphrag_c2", "graphrag_c3", "graphrag_ts")


def plan_of(name, *overrides):
    return cells([f"method={name}", *overrides])[0][0].plan


@pytest.mark.parametrize("window", [8000, 16000, 32000, 64000])
def test_one_setting_governs_the_window_of_all(window):
    for name in GLOBAL:
        component, settings = plan_of(name, f"method.window={window}").generator
        assert (component.name, settings["unit"]) == ("map_reduce", "pack")
        assert settings["pack_tokens"] == settings["reduce_tokens"] == window
    (section,) = plan_of("graphrag_ss", f"method.window={window}").sections
    assert section.tokens == window and section.top_k is None


def test_they_differ_in_what_is_read_and_in_nothing_else():
    said = {name: plan_of(name).generator for name in GLOBAL}
    assert all(settings == said["graphrag_c0"][1] for _, settings in said.values())
    assert said["graphrag_c0"][1]["min_score"] == 1 and said["graphrag_c0"][1]["shuffle"]
    levels = [plan_of(name).operators[0].settings for name in GLOBAL[:4]]
    assert [(s["level"], s["mode"], s["top_k"], s["min_rating"]) for s in levels] == [
        (n, "at", None, 0.0) for n in range(4)
    ]
    direct = plan_of("graphrag_ss").generator[1]
    assert all(direct[name] == said["graphrag_c0"][1][name] for name in ("short_answer", "may_refuse", "max_tokens"))


def test_source_texts_want_no_graph_and_reports_want_the_papers():
    found = {name: cells([f"method={name}"])[0][0] for name in (*GLOBAL, "graphrag_ss")}
    assert {name: cell.choices["graph"] for name, cell in found.items()} == {
        **dict.fromkeys(GLOBAL[:4], "local_to_global"), "graphrag_ts": "none", "graphrag_ss": "none",
    }  # fmt: skip
    assert {cell.choices["chunking"] for cell in found.values()} == {"graphrag"}
    graph = found["graphrag_c0"].config["graph"]
    assert (graph["reflect"], graph["weight"], graph["match"], graph["gleaning"]) == ("before", "count", "exact", 1)


def test_the_experiments_are_the_papers():
    every = cells(["experiment=graphrag_conditions"])[0]
    assert len(every) == 6 * 4 and {cell.config["method"]["window"] for cell in every} == {8000, 16000, 32000, 64000}
    assert all(cell.config["llm"]["window"] > cell.config["method"]["window"] for cell in every)
    figure = cells(["experiment=graphrag_figure3"])[0]
    assert {(cell.config["chunking"]["size"], cell.config["graph"]["gleaning"]) for cell in figure} == {
        (size, rounds) for size in (600, 1200, 2400) for rounds in range(4)
    }
    assert {cell.config["until"] for cell in figure} == {"graph"}
    assert {"graphrag_conditions", "graphrag_figure3"} <= set(sources.pages("experiment"))
