"""Loops: every fault of a `repeat` with its place, and what a round does to whom."""

import asyncio
import dataclasses
from typing import NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.execute import query_texts, retrieve
from graphrag_bench.pipeline.method import Loop
from graphrag_bench.pipeline.texts import Questions, Text, Texts, Truths
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import Frontier, Path, Reach, Subgraphs

# Where a question's walk ends stands in its text: "3?" walks from node 0 to node 3.
ASKED = Questions(("a", "b", "c", "d"), ("1?", "3?", "9?", "2?"), failed={3: "timeout: 60 s"})
LOG: list[tuple[str, tuple[str, ...]]] = []


class Thought(NamedTuple):
    questions: Questions
    done: Truths


class Hits(NamedTuple):
    nodes: Nodes
    notes: Texts


def start(questions: Questions) -> Nodes:
    return Nodes.of_rows([([0], [1.0])] * len(questions))


def step(questions: Questions, nodes: Nodes, *, width: int = 1) -> Nodes:
    LOG.append(("step", questions.ids))
    return Nodes.of_rows([(row.ids + width, row.scores / 2) for row in nodes])


def near(nodes: Nodes) -> Nodes:
    return Nodes.of_rows(list(nodes))


def reached(questions: Questions, nodes: Nodes) -> Truths:
    rows = zip(questions.texts, nodes, strict=True)
    return Truths([int(text.strip("?")) in row.ids.tolist() for text, row in rows])


def loses(questions: Questions, nodes: Nodes) -> Nodes:
    """Fail question b at node 2, and any batch that has come to node 4."""
    if any(4 in row.ids for row in nodes):
        raise OperatorFailure("too far")
    return Nodes.of_rows(
        list(nodes), {n: "empty: b" for n, q in enumerate(questions.ids) if q == "b" and 2 in nodes.row(n).ids}
    )


def found(nodes: Nodes) -> Chunks:
    return Chunks.of_rows([(row.ids, row.scores) for row in nodes])


def both(questions: Questions, nodes: Nodes) -> Hits:
    notes = [
        tuple(Text(f"{q} at {n}", n) for n in row.ids.tolist()) for q, row in zip(questions.ids, nodes, strict=True)
    ]
    return Hits(Nodes.of_rows(list(nodes)), Texts(notes))


def stands(nodes: Nodes) -> Frontier:
    return Frontier([[Reach(n, score=s) for n, s in zip(*row, strict=True)] for row in nodes])


def walks(frontier: Frontier) -> Frontier:
    return Frontier([[Reach(i.node + 1, i.node, 1, i.score / 2) for i in row] for row in frontier])


def walked(frontier: Frontier) -> Subgraphs:
    return Subgraphs(
        [
            [Path((i.node - 1, i.node), (i.relationship,), (1,), i.score) for i in row if i.relationship >= 0]
            for row in frontier
        ]
    )


def spoken(subgraphs: Subgraphs) -> Communities:
    return Communities.of_rows([([p.nodes[-1] for p in row], [p.score for p in row]) for row in subgraphs])


def over(relationships: Relationships) -> Relationships:
    return Relationships.of_rows(list(relationships))


def told(questions: Questions) -> Texts:
    return Texts([(Text(text),) for text in questions.texts])


def think(questions: Questions, chunks: Chunks) -> Thought:
    """Reword: "9?" -> "9! 1" -> ...; done when two words were added. Sees the question in its own words, as it was asked."""
    LOG.append(("think", questions.ids))
    texts = tuple(f"{text} {row.ids.tolist()[0]}" for text, row in zip(questions.texts, chunks, strict=True))
    done = [len(row.ids) > 1 or row.ids[0] > 3 for row in chunks]
    return Thought(dataclasses.replace(questions, texts=texts, entities=tuple((text,) for text in texts)), Truths(done))


def length(questions: Questions) -> Chunks:
    LOG.append(("length", questions.ids))
    return Chunks.of_rows([([len(text)], [1.0]) for text in questions.texts])


OPERATORS = (start, step, near, reached, loses, found, both, stands, walks, walked, spoken, over, told, think, length)

PAGE = """\
name: Loopy
retrieve:
  begun: {operator: t.start}
  walk:
    repeat:
      max: 3
      carry: {here: begun}
      steps:
        far: {operator: t.step, nodes: here}
        here: {operator: t.near, nodes: far}
        done: {operator: t.reached, nodes: here}
      until: done
      collect: last
context: {c: {from: walk.here}}
answer: {generator: direct}
"""


@pytest.fixture(autouse=True)
def operators(registered):
    LOG.clear()
    for call in OPERATORS:
        registered(f"t.{call.__name__}", call)


@pytest.fixture
def plan(planner):
    def made(text):
        checked = planner(text)
        found = checked.plan()
        assert checked.faults == []
        return found

    return made


@pytest.fixture
def run(plan):
    def values(text, questions=ASKED):
        return asyncio.run(retrieve(plan(text), {}, questions))

    return values


def ids(value):
    return [row.ids.tolist() for row in value]


def changed(*pairs):
    text = PAGE
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


# -- the page --


def test_a_good_loop_is_a_step_of_the_plan(plan):
    made = plan(PAGE)
    loop = made.steps[1]
    assert isinstance(loop, Loop)
    assert (loop.name, loop.rounds, loop.carry, loop.until, loop.collect) == (
        "walk",
        3,
        {"here": "begun"},
        "done",
        "last",
    )
    assert [step.component.name for step in made.operators] == ["t.start", "t.step", "t.near", "t.reached"]
    assert made.line() == (
        "t.start > repeat(3 until done: t.step(here) > t.near(far) > t.reached(here)) > context(c) > direct"
    )


# what is changed in the page -> line, problem, fix of the one fault there is
FAULTS = {
    "no max": ([("      max: 3\n", "")], 5, "loop walk does not say its max", "max: 3"),
    "max of 0": ([("max: 3", "max: 0")], 6, "max to be at least 1, and found 0", "Write max: 1."),
    "max below 0": ([("max: 3", "max: -2")], 6, "max to be at least 1, and found -2", "Write max: 1."),
    "max in words": ([("max: 3", "max: three")], 6, "max as int, and found 'three'", ""),
    "max of yes": ([("max: 3", "max: true")], 6, "max as int, and found True", ""),
    "max of a half": ([("max: 3", "max: 2.5")], 6, "max as int, and found 2.5", ""),
    "unknown collect": (
        [("collect: last", "collect: lst")],
        13,
        "collect as last | union, and found 'lst'",
        "Did you mean last?",
    ),
    "unknown setting": (
        [("collect: last", "colect: last")],
        13,
        "loop walk has no setting 'colect'",
        "Did you mean collect?",
    ),
    "setting beside repeat": (
        [("  walk:\n", "  walk:\n    top_k: 3\n")],
        5,
        "walk repeats steps and has no setting 'top_k'",
        "Move it into repeat.",
    ),
    "carry from nothing": (
        [("here: begun", "here: begn")],
        7,
        "here begins with 'begn', which no earlier step makes",
        "Did you mean begun?",
    ),
    "carry of nothing": (
        [("here: begun", "here: begun, there: begun")],
        7,
        "no step of loop walk makes 'there'",
        "Name a step so",
    ),
    "carry changes type": (
        [
            ("here: {operator: t.near, nodes: far}", "here: {operator: t.stands, nodes: far}"),
            ("nodes: here}\n      until", "nodes: here.nodes}\n      until"),
            ("from: walk.here", "from: walk.far"),
        ],
        10,
        "here begins as Nodes and is made as Frontier",
        "Of that type: begun, far, here.nodes.",
    ),
    "until of another type": (
        [("until: done", "until: here")],
        12,
        "until wants yes or no for each question, and 'here' is Nodes",
        "Of that type: done.",
    ),
    "until of nothing": ([("until: done", "until: dne")], 12, "and no step makes 'dne'", "Of that type: done."),
    "shadow": (
        [("        far:", "        begun: {operator: t.start}\n        far:")],
        9,
        "'begun' is made before the loop already",
        "another name",
    ),
    "wire to nothing": (
        [("t.step, nodes: here", "t.step, nodes: hre")],
        9,
        "takes 'hre' as nodes",
        "Did you mean here?",
    ),
    "unknown operator": (
        [("operator: t.near", "operator: t.naer")],
        10,
        "no operator is called 't.naer'",
        "Did you mean t.near?",
    ),
    "unknown setting of a step": (
        [("t.step, nodes: here", "t.step, nodes: here, widht: 2")],
        9,
        "no setting 'widht'",
        "Did you mean width?",
    ),
    "step without operator": (
        [
            ("        far: {operator: t.step, nodes: here}", "        far: {nodes: here}"),
            ("{operator: t.near, nodes: far}", "{operator: t.near, nodes: here}"),
        ],
        9,
        "step 'far' names no operator",
        "Write far: {operator: …}.",
    ),
    "ambiguous wire": ([("t.step, nodes: here", "t.step")], 9, "2 values fit: begun, here", "nodes: [begun, here]"),
    "read before the loop": (
        [("  walk:\n", "  early: {operator: t.near, nodes: walk.here}\n  walk:\n"), ("from: walk.here", "from: early")],
        4,
        "takes 'walk.here' as nodes, which no earlier step makes",
        "",
    ),
}


@pytest.mark.parametrize("kind", list(FAULTS))
def test_a_fault_of_a_loop_is_said_once_with_its_line(planner, kind):
    pairs, line, problem, fix = FAULTS[kind]
    made = planner(changed(*pairs))
    assert made.plan() is None
    said, *more = made.faults
    assert len(more) == (kind == "carry from nothing")  # the step that reads it finds nothing, either
    assert said.problem.startswith(f"page:{line}: ")
    assert problem in said.problem
    assert fix in (said.fix or "")


def faults(planner, text):
    made = planner(text)
    assert made.plan() is None
    return [f"{fault.problem} | {fault.fix}" for fault in made.faults]


def test_a_loop_without_steps(planner):
    for steps in ("", "      steps: {}\n", "      steps:\n", "      steps: 3\n", "      steps: [a]\n"):
        text = f"name: X\nretrieve:\n  walk:\n    repeat:\n      max: 2\n{steps}answer: {{generator: direct}}\n"
        said = faults(planner, text)
        assert any("page:4: loop walk does not say its steps" in one or "steps as dict" in one for one in said), (
            steps,
            said,
        )


@pytest.mark.parametrize("repeat", ["3", "[a]", "null", "yes"])
def test_a_repeat_that_is_no_mapping(planner, repeat):
    text = f"name: X\nretrieve:\n  walk: {{repeat: {repeat}}}\nanswer: {{generator: direct}}\n"
    assert any(said.startswith("page:3: walk does not say what it repeats") for said in faults(planner, text))


def test_what_nobody_reads_inside_a_loop_is_told(planner):
    idle = changed(("        far:", "        idle: {operator: t.found, nodes: here}\n        far:"))
    (said,) = faults(planner, idle)
    assert said.startswith("page:4: nothing reads the result of step 'walk.idle'")
    assert planner(idle.replace("from: walk.here", "from: walk.idle")).plan() is not None  # outside counts as well
    unused = changed(("  walk:\n", "  spare: {operator: t.start}\n  walk:\n"))
    (said,) = faults(planner, unused)
    assert said.startswith("page:4: nothing reads the result of step 'spare'")


def test_a_carried_name_hides_the_outer_value_of_its_name(planner):
    """The outer `here` is read by nobody: inside the loop `here` is what is carried."""
    hiding = changed(("  walk:\n", "  here: {operator: t.near, nodes: begun}\n  walk:\n"))
    (said,) = faults(planner, hiding)
    assert said.startswith("page:4: nothing reads the result of step 'here'")


def test_a_step_with_fields_is_carried_by_its_fields(planner):
    page = """\
name: X
retrieve:
  begun: {operator: t.start}
  walk:
    repeat:
      max: 2
      carry: {hits: begun}
      steps:
        hits: {operator: t.both, nodes: hits}
context: {c: {from: walk.hits.notes}}
answer: {generator: direct}
"""
    (said,) = faults(planner, page)
    assert said == "page:7: no step of loop walk makes 'hits'. | Carry one of its results: hits.nodes, hits.notes."
    assert planner(
        page.replace("{hits: begun}", "{hits.nodes: begun}").replace("nodes: hits}", "nodes: hits.nodes}")
    ).plan()


def test_a_step_of_a_loop_may_not_hide_the_fields_of_an_earlier_one(planner):
    page = changed(
        ("  walk:\n", "  far: {operator: t.both, nodes: begun}\n  walk:\n"),
        ("from: walk.here", "from: [walk.here, far.nodes]"),
        ("answer:", "  # c\nanswer:"),
    ).replace("from: [walk.here, far.nodes]}", "from: [walk.here, far.nodes]}, n: {from: far.notes}")
    (said,) = faults(planner, page)
    assert said.startswith("page:10: 'far' is made before the loop already.")


def test_until_names_something_a_round_changes(planner):
    page = changed(
        ("  walk:\n", "  over: {operator: t.reached, nodes: begun}\n  walk:\n"), ("until: done", "until: over")
    )
    said = faults(planner, page)
    assert any("page:13: until names 'over', which no round of loop walk changes" in one for one in said)


def test_the_faults_of_nested_loops_have_their_own_lines(planner):
    page = (
        NESTED.replace("max: 2", "max: 0")
        .replace("until: close", "until: here")
        .replace("t.reached, nodes: at", "t.rched")
    )
    said = faults(planner, page)
    assert any(one.startswith("page:11: loop inner wants max to be at least 1, and found 0") for one in said)
    assert any(one.startswith("page:15: no operator is called 't.rched'") for one in said)
    assert any(one.startswith("page:16: until wants yes or no") and "'here' is Nodes" in one for one in said)
    assert len(said) == 3


# -- rounds --


def test_done_questions_are_frozen_and_not_asked_again_and_failed_ones_never(run):
    values = run(PAGE)
    assert LOG == [
        ("step", ("a", "b", "c")),
        ("step", ("b", "c")),
        ("step", ("b", "c")),
    ]  # a is done at node 1, d had failed
    assert ids(values["walk.here"])[:3] == ids(values["walk.far"])[:3] == [[1], [3], [3]]  # of its last round each
    assert ids(values["walk.far"])[3] == []
    assert ids(values["walk.here"])[3] == [0]  # what it began with; its failure is what counts
    assert values["walk.done"].rows == (True, True, False, False)
    for name in ("walk.here", "walk.far", "walk.done"):
        assert values[name].failed == {3: "timeout: 60 s"}
    assert [row.scores.tolist() for row in values["walk.here"]][:2] == [[0.5], [0.125]]


def test_without_until_every_round_is_made_by_everybody(run):
    values = run(changed(("      until: done\n", ""), ("        done: {operator: t.reached, nodes: here}\n", "")))
    assert LOG == [("step", ("a", "b", "c"))] * 3
    assert ids(values["walk.here"])[:3] == [[3], [3], [3]]


def test_until_at_once_makes_one_round(run):
    values = run(PAGE, dataclasses.replace(ASKED, texts=("1?",) * 4))
    assert LOG == [("step", ("a", "b", "c"))]
    assert ids(values["walk.here"])[:3] == [[1]] * 3


def test_rounds_unite_where_the_page_says_so(run):
    values = run(changed(("collect: last", "collect: union")))
    assert ids(values["walk.far"])[:3] == [[1], [1, 2, 3], [1, 2, 3]]
    assert ids(values["walk.here"])[:3] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]  # with what it began with
    assert values["walk.done"].rows == (True, True, False, False)
    assert values["walk.far"].failed == {3: "timeout: 60 s"}


def test_a_question_that_fails_inside_a_loop_leaves_it_with_its_reason(run):
    values = run(changed(("t.near", "t.loses"), ("max: 3", "max: 6")))
    # b is lost at node 2; c goes on alone until the operator serves no batch at all
    assert LOG[:3] == [("step", ("a", "b", "c")), ("step", ("b", "c")), ("step", ("c",))]
    assert LOG[3:] == [("step", ("c",))]
    assert (
        values["walk.far"].failed
        == values["walk.done"].failed
        == {
            1: "empty: b",
            2: "operator: t.loses: too far",
            3: "timeout: 60 s",
        }
    )


def test_values_made_outside_are_read_of_the_questions_that_are_left(run):
    page = changed(
        ("  walk:\n", "  notes: {operator: t.told}\n  other: {operator: t.start}\n  walk:\n"),
        ("nodes: far}", "nodes: [far, other]}"),
        ("from: walk.here}", "from: walk.here}, n: {from: notes}"),
    )
    values = run(page)
    # every round steps on from all it holds, and 0 comes in again: 0 1, then 0 1 2, then 0 1 2 3
    assert [sorted(row) for row in ids(values["walk.here"])[:3]] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("collect", ["last", "union"])
def test_nobody_in_the_batch_or_everybody_failed(run, collect):
    page = changed(("collect: last", f"collect: {collect}"))
    nobody = run(page, Questions((), ()))
    assert {name: value.size for name, value in nobody.items()} == dict.fromkeys(nobody, 0)
    lost = dataclasses.replace(ASKED, failed=dict.fromkeys(range(4), "timeout: x"))
    values = run(page, lost)
    assert set(values) == {"begun", "walk.here", "walk.far", "walk.done"}
    for value in values.values():
        assert (value.size, value.failed) == (4, lost.failed)
    assert type(values["walk.done"]) is Truths


EVERYTHING = """\
name: Everything
retrieve:
  begun: {operator: t.start}
  topics: {operator: t.stands, nodes: begun}
  walk:
    repeat:
      max: 4
      carry: {frontier: topics}
      steps:
        frontier: {operator: t.walks, frontier: frontier}
        paths: {operator: t.walked, frontier: frontier}
        close: {operator: t.spoken, subgraphs: paths}
        gone: {operator: t.over, relationships: paths.relationships}
        hits: {operator: t.both, nodes: frontier.nodes}
        seen: {operator: t.found, nodes: hits.nodes}
        done: {operator: t.reached, nodes: frontier.nodes}
      until: done
      collect: COLLECT
  last: {operator: t.near, nodes: walk.frontier.nodes}
context:
  a: {from: walk.paths}
  b: {from: walk.close}
  c: {from: walk.gone}
  d: {from: walk.hits.notes}
  e: {from: walk.seen}
  f: {from: last}
answer: {generator: direct}
"""


@pytest.mark.parametrize("collect", ["last", "union"])
def test_every_type_of_wire_comes_out_of_a_loop_parts_and_fields_too(run, collect):
    values = run(EVERYTHING.replace("COLLECT", collect))
    rounds = {"a": [1], "b": [1, 2, 3], "c": [1, 2, 3, 4]}
    for number, (name, nodes) in enumerate(rounds.items()):
        kept = nodes if collect == "union" else nodes[-1:]
        assert [p.nodes for p in values["walk.paths"].row(number)] == [(n - 1, n) for n in kept]
        assert sorted(values["walk.gone"].row(number).ids) == [n - 1 for n in kept]
        assert sorted(values["walk.close"].row(number).ids) == sorted(values["walk.seen"].row(number).ids) == kept
        assert values["walk.hits.notes"].row(number) == tuple(Text(f"{name} at {n}", n) for n in kept)
        began = [0] if collect == "union" else []
        assert [item.node for item in values["walk.frontier"].row(number)] == began + kept
        assert values["last"].row(number).ids.tolist() == began + kept
    assert values["walk.done"].rows == (True, True, False, False)
    kinds = {name: type(value) for name, value in values.items()}
    assert kinds == {
        "begun": Nodes, "topics": Frontier, "walk.frontier": Frontier, "walk.paths": Subgraphs, "walk.close": Communities,
        "walk.gone": Relationships, "walk.hits.nodes": Nodes, "walk.hits.notes": Texts, "walk.seen": Chunks,
        "walk.done": Truths, "last": Nodes,
    }  # fmt: skip
    assert all(value.failed == {3: "timeout: 60 s"} for value in values.values())


THINKING = """\
name: Thinking
question: {entities: {by: rule}}
retrieve:
  found: {operator: t.length}
  first: {operator: t.think, chunks: found}
  more:
    repeat:
      max: 3
      carry: {thought.questions: first.questions, all: found}
      steps:
        next: {operator: t.length, questions: thought.questions}
        all: {operator: t.pass, chunks: [all, next]}
        thought: {operator: t.think, chunks: next}
      until: thought.done
      collect: COLLECT
  after: {operator: t.length, questions: more.thought.questions}
context: {c: {from: [more.all, after, more.next]}}
answer: {generator: direct}
"""


@pytest.mark.parametrize("collect", ["last", "union"])
def test_new_wordings_are_carried_and_the_words_of_the_frozen_kept(run, planner, registered, collect):
    def passed(chunks: Chunks) -> Chunks:
        return chunks

    registered("t.pass", passed)
    page = THINKING.replace("COLLECT", collect)
    asked = Questions(
        ("a", "b", "c", "d"),
        ("1", "22", "333333", "4"),
        entities=(("A",), ("B",), ("C",), ()),
        failed={3: "timeout: x"},
    )
    made = planner(page)
    plan = made.plan()
    # a value nobody reads is a fault as everywhere: the first thought's yes or no
    assert [fault.problem for fault in made.faults] == ["page:5: nothing reads the result of step 'first.done'."]
    assert plan is None
    page = page.replace(
        "      until", "        gate: {operator: t.gate, done: first.done, chunks: next}\n      until"
    ).replace("more.next]", "more.next, more.gate]")

    def gate(done: Truths, chunks: Chunks) -> Chunks:
        return Chunks.of_rows(list(chunks))

    registered("t.gate", gate)
    values = run(page, asked)
    # lengths: a "1" -> "1 1" (3) -> done? its chunk is 3: no -> "1 3" (3) …; c: "333333 6" (8 > 3): done in the first round
    assert [row for row in LOG if row[0] == "length"][1:-1] == [
        ("length", ("a", "b", "c")),
        ("length", ("a",)),
        ("length", ("a",)),
    ]
    reworded = values["more.thought.questions"]
    assert reworded.ids == ("a", "b", "c", "d")
    assert reworded.texts == ("1 3", "22 4", "333333 8", "4 1")  # what is frozen, or failed, keeps its words
    assert reworded.entities == (("1 3",), ("22 4",), ("333333 8",), ("4 1",))
    assert reworded.failed == {3: "timeout: x"}
    assert values["more.thought.done"].rows == (False, True, True, False)
    assert ids(values["more.all"])[:3] == [[1, 3], [2, 4], [6, 8]]
    assert ids(values["after"])[:3] == [[3], [4], [8]]


def test_the_words_a_loop_asks_with_are_not_embedded_beforehand(plan, registered):
    from graphrag_bench.index.vectors import ChunkVectors

    def search(questions: Questions, vectors: ChunkVectors) -> Chunks:
        return Chunks.empty(len(questions))

    registered("t.length", search)
    page = PAGE.replace("  walk:\n", "  hits: {operator: t.length}\n  walk:\n").replace(
        "walk.here}", "walk.here}, h: {from: hits}"
    )
    assert query_texts(plan(page), ASKED) == ["1?", "3?", "9?"]
    inside = changed(
        ("        far:", "        hits: {operator: t.length}\n        far:"),
        ("from: walk.here}", "from: walk.here}, h: {from: walk.hits}"),
    )
    assert query_texts(plan(inside), ASKED) == ["1?", "3?", "9?"]


NESTED = """\
name: Nested
retrieve:
  begun: {operator: t.start}
  outer:
    repeat:
      max: 3
      carry: {here: begun}
      steps:
        inner:
          repeat:
            max: 2
            carry: {at: here}
            steps:
              at: {operator: t.step, nodes: at}
              close: {operator: t.reached, nodes: at}
            until: close
        here: {operator: t.near, nodes: inner.at}
        done: {operator: t.reached, nodes: here}
      until: done
context: {c: {from: outer.here}, i: {from: outer.inner.at}}
answer: {generator: direct}
"""


def test_loops_within_loops(run):
    values = run(NESTED)
    # a is done in the first inner round; b goes 2 and stops at 3; c goes 2, 4, 6
    assert ids(values["outer.here"])[:3] == ids(values["outer.inner.at"])[:3] == [[1], [3], [6]]
    assert values["outer.done"].rows == (True, True, False, False)
    assert values["outer.inner.close"].rows == (True, True, False, False)
    assert [asked for _, asked in LOG] == [("a", "b", "c"), ("b", "c"), ("b", "c"), ("c",), ("c",), ("c",)]
    assert all(value.failed == {3: "timeout: 60 s"} for value in values.values())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["1?", "2?", "3?", "9?"]), max_size=5),
    st.sets(st.integers(0, 4)),
    st.sampled_from(["last", "union"]),
    st.sampled_from(["nested", "everything"]),
)
def test_a_batch_is_its_questions_one_by_one(planner, texts, failed, collect, which):
    page = EVERYTHING.replace("COLLECT", collect)
    if which == "nested":
        page = NESTED.replace("      until: done\n", f"      until: done\n      collect: {collect}\n")
    made = planner(page)
    plan = made.plan()
    assert made.faults == []
    asked = Questions(
        tuple(f"q{n}" for n in range(len(texts))),
        tuple(texts),
        failed={n: "timeout: x" for n in failed if n < len(texts)},
    )
    whole = asyncio.run(retrieve(plan, {}, asked))
    for number in range(len(texts)):
        alone = asyncio.run(retrieve(plan, {}, asked.take([number])))
        assert whole.keys() == alone.keys()
        for name, value in whole.items():
            one = value.take([number])
            assert one.failed == alone[name].failed
            row, same = one.row(0), alone[name].row(0)
            assert [list(part) for part in row] == [list(part) for part in same] if hasattr(row, "ids") else row == same


def test_the_page_of_a_loop_is_plain_yaml():
    """A dotted name in `carry` is a key like any other, for OmegaConf too."""
    from omegaconf import OmegaConf

    page = yaml.safe_load(THINKING)
    assert OmegaConf.to_container(OmegaConf.create(page), resolve=True) == page


def test_a_question_no_round_has_seen_keeps_the_words_it_had(run, registered):
    """A question that failed before the loop has an empty row in no value: its id and words stay its own."""

    def reword(questions: Questions, nodes: Nodes) -> Questions:
        return dataclasses.replace(
            questions, texts=tuple(f"{t}!" for t in questions.texts), entities=(("E",),) * len(questions)
        )

    registered("t.reword", reword)
    more = "again: {operator: t.reword, nodes: here}\n        seen: {operator: t.length, questions: again}\n        "
    page = changed(
        ("        done: {op", f"        {more}done: {{op"),
        ("from: walk.here}", "from: walk.here}, s: {from: [walk.seen, last]}"),
        ("context:", "  last: {operator: t.length, questions: walk.again}\ncontext:"),
    )
    for collect in ("last", "union"):
        again = run(page.replace("collect: last", f"collect: {collect}"))["walk.again"]
        assert again.ids == ("a", "b", "c", "d")
        assert again.texts == (
            "1?!",
            "3?!",
            "9?!",
            "2?",
        )  # "a" has one round, the others three: each from its own words
        assert again.entities == (("E",), ("E",), ("E",), ())
        assert again.failed == {3: "timeout: 60 s"}


IRCOT = """\
name: IRCoT
retrieve:
  first: {operator: t.length}
  more:
    repeat:
      max: 2
      carry: {next.questions: questions}
      steps:
        found: {operator: t.length, questions: next.questions}
        next: {operator: t.think, chunks: found}
      until: next.done
      collect: union
context: {c: {from: [first, more.found]}}
answer: {generator: direct}
"""


def test_a_loop_may_begin_with_a_thought(planner):
    made = planner(IRCOT)
    plan = made.plan()
    assert made.faults == []
    assert plan is not None
