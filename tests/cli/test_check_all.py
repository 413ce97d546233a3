"""check --all: every method's page on every kind of graph."""

import asyncio
import re

import pytest

from graphrag_bench import preflight, support
from graphrag_bench.cells import cells
from graphrag_bench.config import sources
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.toy import toy_graph
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.preflight import probe_cells, prober
from graphrag_bench.registry import REGISTRY

PAGES = {name: sources.read_page(sources.page("graph", name)) for name in sources.pages("graph")}
# every page that builds a graph, no graph last; one that imports a graph is there where there is a path to read
GRAPHS = [*sorted(name for name, page in PAGES.items() if name != "none" and page.get("path") != "???"), "none"]


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], support.Support]:
    return {(item.method, item.graph): item for item in support.supports()}


def test_every_page_meets_every_graph(found):
    assert set(found) == {(method, graph) for method in sources.pages("method") for graph in GRAPHS}


def test_every_page_runs_on_the_graph_it_requires(found):
    for method in sources.pages("method"):
        (required,) = [item for (name, _), item in found.items() if name == method and item.required]
        assert required.word == "yes", method


@pytest.mark.parametrize(("method", "graph", "word", "missing"), [
    ("hipporag", "kg", "yes", ""),
    ("hipporag", "tkg", "yes", ""),
    ("hipporag", "passage", "no", "node.name"),
    ("hipporag", "none", "no", "graph"),
    ("kgp", "kg", "no", "node.text"),
    ("kgp", "tree", "yes", ""),
    ("vanilla", "none", "yes", ""),
    ("vanilla", "kg", "unread", ""),
    ("cheaprag", "none", "no", "graph"),
    ("original/tog", "rkg", "yes", ""),
])  # fmt: skip
def test_some_pairs(found, method, graph, word, missing):
    item = found[method, graph]
    assert (item.word, item.missing) == (word, missing)


def test_what_is_missing_is_what_the_builder_does_not_provide(found):
    for item in found.values():
        if item.word == "no" and item.graph != "none":
            assert set(REGISTRY.get("builder", PAGES[item.graph]["builder"]).provides).isdisjoint(item.missing.split("|"))


def test_the_matrix(world):
    told = world.run("--all", "method=hipporag", verb="check", usual=False)
    assert told.code == 0, told.err
    header, _, line, *rest = told.out.splitlines()
    assert header.split() == ["method", *GRAPHS]
    name, *words = re.split(r"\s{2,}", line)
    assert name == "hipporag"
    known = {"kg": "yes*", "passage": "– node.name", "rkg": "yes", "tkg": "yes", "tree": "– node.name", "none": "– graph"}
    shown = dict(zip(GRAPHS, words, strict=True))
    assert {graph: shown[graph] for graph in known} == known
    pairs = sum(word.startswith("yes") for word in words)
    assert rest[-1].startswith(f"1 method, {len(GRAPHS)} graphs, {pairs} pairs probed;")


def test_a_graph_narrows_the_columns_and_settings_hold_for_all(world):
    told = world.run(
        "--all", "method=kgp", "graph=passage", "retrieval_depth=7", "graph.link=tfidf", verb="check", usual=False
    )
    assert told.code == 0, told.err
    assert re.split(r"\s{2,}", told.out.splitlines()[2]) == ["kgp", "yes*"]


def test_nothing_is_written(world):
    before = world.files()
    assert world.run("--all", "method=vanilla", verb="check", usual=False).code == 0
    assert world.files() == before


@pytest.mark.parametrize(("arguments", "told"), [
    (["-m", "method=bm25"], "takes no sweep"),
    (["experiment=demo"], "takes no sweep"),
    (["method=hiporag"], "Did you mean hipporag?"),
    (["graph=kgg"], "There is no graph called 'kgg'"),
    (["method=vanilla", "graph.nonsense=1"], "no method and no graph has a use for it"),
    (["method=vanilla", "retrieval_depth=0"], "retrieval_depth"),
    (["method=vanilla", "graph=imported"], "graph.path"),
    (["method=hipporag", "graph.path=nowhere"], "nowhere does not exist.\n      Check graph.path."),
])  # fmt: skip
def test_what_cannot_be_checked_is_said(world, arguments, told):
    outcome = world.run("--all", *arguments, verb="check", usual=False)
    assert outcome.code == 2
    assert told in outcome.err and "Traceback" not in outcome.err


@pytest.fixture
def page(monkeypatch, tmp_path):
    """Bring in a folder of pages of a stranger's, as an installed package would."""

    def add(name: str, text: str) -> None:
        path = tmp_path / "conf" / "method" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        own = sources.roots()[0]
        monkeypatch.setattr(sources, "roots", lambda: (own, tmp_path / "conf"))

    return add


def test_a_page_that_fails_on_its_own_graph_is_a_fault(world, page):
    steps = "retrieve: {n: {operator: node.link}}\ncontext: {n: {from: n}}\nanswer: {generator: direct}\n"
    page("broken", f"name: Broken\nrequires: {{graph: passage}}\n{steps}")
    told = world.run("--all", "method=broken", verb="check", usual=False)
    assert told.code == 2
    assert "node.link reads node.name, which the graph passage has not" in told.err


def test_a_page_that_is_no_method_is_a_fault_beside_the_others(world, page, monkeypatch):
    page("broken", "name: Broken\nretrieve:\n  n: {operator: node.nonsense}\nanswer: {generator: direct}\n")
    page("odd", "name: Odd\nretrieve:\n  n: {operator: node.vdbb}\nanswer: {generator: direct}\n")
    known = sources.pages
    few = ("broken", "odd", "vanilla")
    monkeypatch.setattr(
        sources, "pages", lambda group: {k: v for k, v in known(group).items() if group != "method" or k in few}
    )
    told = world.run("--all", verb="check", usual=False)
    assert told.code == 2
    assert told.err.startswith("graphrag-bench: 2 faults")
    assert "node.nonsense" in told.err and "node.vdbb" in told.err


def test_a_pair_that_breaks_on_the_probe_is_a_fault(monkeypatch):
    async def breaks(plan, lend):
        raise UserError("It breaks.", "Mend it.")

    monkeypatch.setattr(preflight, "probe", breaks)
    with pytest.raises(UserError, match="vanilla on the graph none: It breaks"):
        support.supports(["method=vanilla"])


def test_an_imported_graph_is_checked_where_its_path_is_given(tmp_path):
    toy_graph(REGISTRY.get("embedder", "hashing").call()).save(tmp_path)
    found = support.supports(["method=hipporag", f"graph.path={tmp_path}"])
    words = {item.graph: item.word for item in found}
    assert words["imported"] == "yes"
    assert "lightrag" not in words and "graphrag" not in words  # the folder holds no graph of theirs


def test_a_run_is_told_of_a_graph_that_is_not_there_before_anything_is_spent(world, tmp_path):
    """A folder without LightRAG's file is a fault of check, too, not of the third cell of a sweep."""
    for verb in ("check", "plan"):
        told = world.run("method=hipporag", "graph=lightrag", f"graph.path={tmp_path}", "llm=scripted", verb=verb)
        assert told.code == 2
        assert "holds no graph_chunk_entity_relation.graphml" in told.err


def test_toys_are_made_once(monkeypatch):
    made = []
    real = preflight.toy
    monkeypatch.setattr(
        preflight, "toy", lambda folder, model, carried: made.append(carried) or real(folder, model, carried)
    )
    checked = cells(["method=hipporag"])[0]
    asyncio.run(probe_cells([*checked, *cells(["method=dalk"])[0]]))
    assert made == [checked[0].ground.attributes]

    async def twice():
        with prober() as run:
            await run(checked[0].plan, Ground().attributes)
            await run(checked[0].plan, Ground().attributes)

    asyncio.run(twice())
    assert made[1:] == [frozenset()]
