"""The contract of every operator and every method: the probe runs each of them, with no test written for it.

A new operator or page is tested here as soon as it is registered. An operator no method uses is put into the smallest plan
its ports allow: each wire comes from an operator already at hand that makes its type.
"""

import asyncio

import numpy as np
import pytest

from graphrag_bench.cells import cells
from graphrag_bench.config import sources
from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.service import Chat
from graphrag_bench.pipeline.loans import GRAPH_LOANS, LOANS
from graphrag_bench.pipeline.method import Step
from graphrag_bench.pipeline.plan import Planner
from graphrag_bench.pipeline.probe import probe
from graphrag_bench.pipeline.texts import Questions, Text, Texts, Truths
from graphrag_bench.pipeline.toy import ENTITY_GRAPH, QUESTIONS, toy
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Ranking, Relationships
from graphrag_bench.pipeline.walks import Frontier, Path, Reach, Subgraphs
from graphrag_bench.pipeline.wires import WIRES, parts_of
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.registry import REGISTRY, REQUIRED

METHODS = sorted(sources.pages("method"))
OPERATORS = [component.name for component in REGISTRY.all("operator")]
GROUND = Ground("toy", ENTITY_GRAPH)
PASSAGES = Ground("toy", frozenset({"node.text"}))


def standing(name):
    """A graph that an operator can read."""
    wanted = {attribute for either in REGISTRY.get("operator", name).needs for attribute in either.split("|")}
    return PASSAGES if wanted & PASSAGES.attributes and not wanted & GROUND.attributes else GROUND


@pytest.fixture(scope="module")
def lend(tmp_path_factory):
    return toy(tmp_path_factory.mktemp("probe"), Chat(Scripted()))


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    return toy(tmp_path_factory.mktemp("passages"), Chat(Scripted()), PASSAGES.attributes)


@pytest.fixture(scope="module")
def checked():
    """Every method page as a cell, on the graph it asks for."""
    return {name: cells([f"method={name}", *needed(name)])[0][0] for name in METHODS}


def needed(name):
    """Overrides for what the graph a page requires leaves to the user."""
    graph = (sources.read_page(sources.page("method", name)).get("requires") or {}).get("graph")
    page = sources.read_page(sources.page("graph", graph)) if graph else {}
    return [f"graph.{key}=x" for key, value in page.items() if value == "???"]


@pytest.fixture(scope="module")
def lent(checked, tmp_path_factory):
    """The loans of each kind of graph the pages ask for."""
    carried = {cell.ground.attributes for cell in checked.values()}
    return {one: toy(tmp_path_factory.mktemp("lent"), Chat(Scripted()), one) for one in carried}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_passes_the_probe(name, checked, lent):
    answers = asyncio.run(probe(checked[name].plan, lent[checked[name].ground.attributes]))
    assert [answer.question for answer in answers] == list(QUESTIONS.ids)
    assert [answer.status for answer in answers][2] == "failed"  # it had failed before
    assert all(answer.status in ("ok", "refused") and answer.text for answer in answers[:2])


def makes(component):
    """The wires an operator's result can feed: name suffix -> type."""
    if component.returns in WIRES:
        return {"": component.returns, **{f".{part}": kind for part, kind in parts_of(component.returns).items()}}
    fields = getattr(component.returns, "__annotations__", {})
    return {f".{name}": kind for name, kind in fields.items()} if all(kind in WIRES for kind in fields.values()) else {}


def readable(component, ground):
    """Whether an operator can read a graph."""
    return all(set(either.split("|")) & ground.attributes for either in component.needs)


def read(step, steps):
    """Whether any step reads another's result."""
    return any(str(wire).partition(".")[0] == step for values in steps.values() for wire in values.values())


def smallest(name):
    """A page around one operator, or the reason there is none."""
    page = {
        "name": name,
        "question": {"entities": {"by": "rule"}, "keywords": {"by": "rule"}},
        "retrieve": {},
        "context": {},
        "answer": {"generator": "direct"},
    }
    made: dict[type, str] = {}

    def add(component, step, busy):
        wires = {}
        for port in component.ports:
            if port.annotation in LOANS or (port.optional and component.name != name):
                continue
            if port.annotation not in made:
                feeds = [
                    c
                    for c in REGISTRY.all("operator")
                    if port.annotation in makes(c).values() and c.name not in busy and readable(c, standing(name))
                ]
                for feeding in sorted(feeds, key=lambda c: (len(makes(c)), sum(p.annotation not in LOANS for p in c.ports))):
                    if add(feeding, f"{step}_{port.name}", {*busy, feeding.name}):
                        break
                else:
                    if port.optional:
                        continue
                    return False
            wires[port.name] = made[port.annotation]
        if any(setting.default is REQUIRED for setting in component.settings.values()):
            return False
        page["retrieve"][step] = {"operator": component.name, **wires}
        for suffix, kind in makes(component).items():
            made.setdefault(kind, f"{step}{suffix}")
        return bool(makes(component))

    if not add(REGISTRY.get("operator", name), "probed", {name}):
        return None
    while idle := [step for step in page["retrieve"] if step != "probed" and not read(step, page["retrieve"])]:
        for step in idle:  # made for an input that could not be fed in the end
            del page["retrieve"][step]
    sections = {}
    for suffix, kind in makes(REGISTRY.get("operator", name)).items():  # each result on its way into the context
        if kind in (Truths, Frontier):
            return None  # no context shows it, and what would read it is a loop or another operator
        sections.setdefault(kind.__name__.lower(), {"from": []})["from"].append(f"probed{suffix}")
    page["context"] = sections
    return page if sections else None


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_passes_the_probe_in_a_method_or_in_the_smallest_plan_around_it(name, checked, lend, passages):
    using = [cell for cell in checked.values() if name in {step.component.name for step in cell.plan.operators}]
    if not using:
        page = smallest(name)
        if page is None:
            pytest.skip(f"no plan can be made around {name}: use it in a method page, where it is probed")
        planner = Planner(page, standing(name), lambda *path: ".".join(path))
        plan = planner.plan()
        lend = lend if standing(name) is GROUND else passages
        assert plan is not None, [str(fault) for fault in planner.faults]
        assert len(asyncio.run(probe(plan, lend))) == len(QUESTIONS)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_plan_can_be_made_around_an_operator_nobody_uses(name, lend, passages):
    page = smallest(name)
    if page is None:
        pytest.skip(f"the ports of {name} allow no plan made by rule")
    planner = Planner(page, standing(name), lambda *path: ".".join(path))
    plan = planner.plan()
    assert planner.faults == []
    asyncio.run(probe(plan, lend if standing(name) is GROUND else passages))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_nothing_to_a_question_that_has_failed_and_says_the_same_twice(name, lend):
    """On the toy itself: wires are filled with every element for every question that has not failed."""
    component = REGISTRY.get("operator", name)
    graph = next(loan for kind, loan in lend.items() if kind in GRAPH_LOANS and hasattr(loan, "n_nodes"))
    sizes = {Nodes: graph.n_nodes, Relationships: graph.n_relationships, Chunks: graph.n_chunks, Communities: 2}
    entities = (("Glass Bridge",), ("Norhaven", "Ulm"), ("Ulm",))
    words = ("bridge", "river", "zzz")
    questions = Questions(QUESTIONS.ids, QUESTIONS.texts, entities, words, words, QUESTIONS.failed)
    end = int(graph.targets[0])
    others = {
        Subgraphs: [(Path((int(graph.sources[0]), end), (0,), (1,), 1.0),), (Path((end,)),), ()],
        Frontier: [(Reach(int(graph.sources[0])),), (Reach(end, 0, 1, 0.5),), ()],
        Texts: [(Text("the bridge", 0),), (Text("the river", end),), ()],
        Truths: [True, False, False],
    }
    if any(setting.default is REQUIRED for setting in component.settings.values()):
        pytest.skip(f"{name} has settings without a default")

    def run():
        arguments = {}
        for port in component.ports:
            if port.annotation in sizes:
                size = sizes[port.annotation]
                full = (np.arange(size), np.linspace(1.0, 2.0, size))
                arguments[port.name] = port.annotation.of_rows([full, full, ([], [])], QUESTIONS.failed)
            elif port.annotation in others:
                arguments[port.name] = port.annotation(others[port.annotation], QUESTIONS.failed)
            elif port.annotation is Questions:
                arguments[port.name] = questions
            elif port.annotation in lend:
                arguments[port.name] = lend[port.annotation]
            elif not port.optional:
                pytest.skip(f"the probe lends no {port.annotation.__name__}")
        result = component.call(**arguments)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    results = [made if hasattr(made, "_fields") else (made,) for made in (run(), run())]
    for one, two in zip(*results, strict=True):
        if isinstance(one, Ranking):
            assert len(one) == len(questions)
            assert one.row(2).ids.tolist() == []
            assert one.ids.tolist() == two.ids.tolist()
            assert one.scores.tolist() == two.scores.tolist()
        elif not isinstance(one, Questions):
            assert one.rows == two.rows
            assert not one.rows[2] or isinstance(one, Truths)


# -- what the probe must catch: operators that break their contract --


def outside(questions: Questions) -> Chunks:
    return Chunks.of_rows([([999], [1.0])] * len(questions))


def infinite(questions: Questions) -> Chunks:
    return Chunks.of_rows([([0], [float("inf")])] * len(questions))


def short(questions: Questions) -> Chunks:
    return Chunks.empty(1)


def unsorted(questions: Questions) -> Chunks:
    indptr = np.arange(0, 2 * len(questions) + 1, 2)
    return Chunks(indptr, np.tile([1, 0], len(questions)), np.tile([1.0, 1.0], len(questions)))


def crashing(questions: Questions) -> Chunks:
    raise ZeroDivisionError("by nought")


def lying(questions: Questions) -> Chunks:
    return [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (outside, "an id lies outside the graph"),
        (infinite, "a score is not finite"),
        (short, "1 rows for 3 questions"),
        (unsorted, "not sorted best first, ties by rising id"),
        (crashing, "ZeroDivisionError: by nought"),
        (lying, "broke on the probe"),
    ],
)
def test_a_broken_operator_is_caught_and_named(call, says, registered, lend):
    registered("chunk.broken", call)
    page = {
        "name": "Broken",
        "retrieve": {"found": {"operator": "chunk.broken"}},
        "context": {"c": {"from": "found"}},
        "answer": {"generator": "direct"},
    }
    plan = Planner(page, Ground(), lambda *path: ".".join(path)).plan()
    assert isinstance(plan.steps[0], Step)
    with pytest.raises(UserError) as caught:
        asyncio.run(probe(plan, lend))
    assert str(caught.value).startswith("Broken")
    assert says in str(caught.value)


def test_settings_with_which_a_step_serves_nobody_are_caught(lend):
    page = {
        "name": "Endless",
        "retrieve": {
            "linked": {"operator": "node.link", "by": "question"},
            "ranked": {"operator": "node.ppr", "seeds": "linked", "damping": 1.0},
            "scored": {"operator": "relationship.aggregator", "nodes": "ranked"},
            "found": {"operator": "chunk.aggregator"},
        },
        "context": {"c": {"from": "found"}},
        "answer": {"generator": "direct"},
    }
    plan = Planner(page, GROUND, lambda *path: ".".join(path)).plan()
    with pytest.raises(UserError, match=r"Endless: step 'ranked' cannot serve the probe: node\.ppr: damping"):
        asyncio.run(probe(plan, lend))
