"""The drawing of a method: all of the plan is in it, nothing overlaps, the same bytes each time, whatever things are called."""

import dataclasses
import itertools
import xml.etree.ElementTree as ET
from functools import cache

import pytest
import yaml

from graphrag_bench.cells import cells
from graphrag_bench.config import sources
from graphrag_bench.pipeline.method import Loop, Plan
from graphrag_bench.pipeline.plan import Planner
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.registry import REGISTRY
from graphrag_bench.report.drawing import draw
from graphrag_bench.report.drawing_layout import LABEL, lay_out
from graphrag_bench.report.drawing_scene import LANES, Wire, scene
from graphrag_bench.report.drawing_text import clipped, packed, width

SVG = "{http://www.w3.org/2000/svg}"
NESTED = """
name: Nested
question: {entities: {by: rule}, keywords: {by: model}}
retrieve:
  linked: {operator: node.link, by: entities}
  low: {operator: node.vdb, by: low}
  topics: {operator: frontier.start, nodes: [linked, low], join: sum}
  begun: {operator: subgraph.grow, frontier: topics, paths: null}
  walk:
    repeat:
      max: 3
      carry: {paths: begun, frontier: topics}
      steps:
        inner:
          repeat:
            max: 2
            carry: {frontier: frontier}
            collect: union
            steps:
              facts: {operator: relationship.onehop, nodes: frontier.nodes}
              chosen: {operator: relationship.agent, frontier: frontier, relationships: facts, width: 3}
              frontier: {operator: node.agent, chosen: chosen, candidates: linked, width: 3}
        frontier: {operator: node.agent, chosen: inner.frontier, candidates: low, width: 3}
        paths: {operator: subgraph.grow, frontier: frontier, paths: paths}
        enough: {operator: question.enough, paths: paths}
      until: enough
  facts2: {operator: relationship.vdb, by: question, top_k: 5}
  tree: {operator: subgraph.steiner, nodes: linked, relationships: facts2}
  chunks: {operator: chunk.occurrence, relationships: facts2, nodes: null}
context:
  paths: {from: [walk.paths, tree]}
  entities: {from: [linked, walk.frontier.nodes, tree.nodes], tokens: 100}
  more: {from: low, tokens: 100}
  facts: {from: [facts2, tree.relationships]}
  chunks: {from: chunks}
answer: {generator: direct}
"""
PAGES = sorted(sources.pages("method"))
ALL = [*PAGES, "nested"]


@cache
def plan_of(name: str) -> Plan:
    if name != "nested":
        return cells([f"method={name}"])[0][0].plan
    planner = Planner(
        yaml.safe_load(NESTED), Ground("kg", frozenset(REGISTRY.get("builder", "kg").provides)), lambda *_: "page"
    )
    plan = planner.plan()
    assert not planner.faults
    return plan


def texts(svg: str) -> list[str]:
    return ["".join(found.itertext()) for found in ET.fromstring(svg).iter(f"{SVG}text")]


def loops(steps):
    for step in steps:
        if isinstance(step, Loop):
            yield step
            yield from loops(step.steps)


@pytest.mark.parametrize("name", ALL)
def test_every_part_of_the_plan_is_drawn(name):
    plan = plan_of(name)
    svg = draw(plan, "the row")
    root = ET.fromstring(svg)
    assert root.find(f"{SVG}title").text == plan.name
    assert root.find(f"{SVG}desc").text == plan.line()
    shown = texts(svg)
    assert {"the row", plan.name, *LANES} <= set(shown)
    boxes = root.findall(f".//{SVG}g")
    repeated = list(loops(plan.steps))
    assert [g.get("class") for g in boxes].count("step") == len(plan.operators)
    assert [g.get("class") for g in boxes].count("loop") == len(repeated)
    assert [g.get("class") for g in boxes].count("converter") == len(plan.converters)
    assert [g.get("class") for g in boxes].count("section") == len(plan.sections)
    told = [g.find(f"{SVG}title").text for g in boxes]
    for step in plan.operators:
        assert any(text.startswith(f"{step.name}: {step.component.name}.") for text in told)
    for number, section in enumerate(plan.sections, 1):
        assert f"{number} {section.name}" in shown
    for loop in repeated:
        wanted = [f"at most {loop.rounds} rounds", *loop.carry, *([f"until {loop.until}"] if loop.until else [])]
        assert any(all(part in text for part in wanted) for text in shown)
    assert plan.generator is None or {"answer", plan.generator[0].name} <= set(shown)


@pytest.mark.parametrize("name", ALL)
def test_every_wire_is_drawn_and_ends_at_its_reader(name):
    plan = plan_of(name)
    found = scene(plan)
    for step in plan.operators:
        wanted = {port.annotation.__name__ for port in step.component.ports if port.name in step.wires}
        assert any(wanted <= {wire.label for wire in found.wires if wire.target == key} for key in _named(found, step))
    for section in plan.sections:
        arriving = [wire for wire in found.wires if wire.target == f"context {section.name}"]
        assert [wire.label for wire in arriving] == [section.kind.__name__] * len(section.sources)
    for loop in loops(plan.steps):
        key = next(box.key for box in found.boxes.values() if box.look == "loop" and box.title == loop.name)
        back = [wire for wire in found.wires if wire.target == key and wire.back]
        assert len(back) == len(loop.carry) + (loop.until is not None)
        # the batch itself comes with all that its converters made of it
        begun = sum(1 + len(plan.converters) * (outer == "questions") for outer in loop.carry.values())
        assert len([wire for wire in found.wires if wire.target == key and not wire.back]) == begun
    drawn = [
        path.find(f"{SVG}title").text for path in ET.fromstring(draw(plan)).iter(f"{SVG}path") if path.get("marker-end")
    ]
    assert sorted(drawn) == sorted(f"{wire.source} to {wire.target}: {wire.label}" for wire in found.wires)


def _named(found, step) -> list[str]:
    return [box.key for box in found.boxes.values() if (box.title, box.operator) == (step.name, step.component.name)]


def test_wires_name_where_a_value_comes_from():
    wires = [
        wire
        for wire in scene(plan_of("tog")).wires
        if wire.target.startswith("walk") and not wire.source.startswith("question")
    ]
    assert wires == [
        Wire("topics", "walk", "", "Frontier"),
        Wire("begun", "walk", "", "Subgraphs"),
        Wire("walk", "walk.facts", "frontier.nodes", "Nodes"),
        Wire("walk", "walk.chosen", "frontier", "Frontier"),
        Wire("walk.facts", "walk.chosen", "", "Relationships"),
        Wire("walk.chosen", "walk.neighbours", ".nodes", "Nodes"),
        Wire("walk.chosen", "walk.neighbours", ".relationships", "Relationships"),
        Wire("walk.chosen", "walk.frontier", "", "Frontier"),
        Wire("walk.neighbours", "walk.frontier", "", "Nodes"),
        Wire("walk.frontier", "walk.paths", "", "Frontier"),
        Wire("walk", "walk.paths", "paths", "Subgraphs"),
        Wire("walk.paths", "walk.enough", "", "Subgraphs"),
        Wire("walk.frontier", "walk", "", "Frontier", back=True),
        Wire("walk.paths", "walk", "", "Subgraphs", back=True),
        Wire("walk.enough", "walk", "", "Truths", back=True),
    ]


@pytest.mark.parametrize("name", ALL)
def test_steps_stand_in_the_lane_of_their_operator(name):
    for box in scene(plan_of(name)).boxes.values():
        if box.look == "step":
            kind = box.operator.partition(".")[0]
            assert LANES[box.lane] == (kind if kind in LANES else "question")


def test_the_lanes_of_hipporag():
    found = scene(plan_of("hipporag"))
    lanes = {box.title: LANES[box.lane] for box in found.boxes.values() if box.lane is not None}
    assert lanes == {
        "question": "question",
        "entities": "question",
        "linked": "node",
        "ranked": "node",
        "relationships": "relationship",
        "chunks": "chunk",
        "1 chunks": "chunk",
    }
    assert found.wires[1] == Wire("question entities", "linked", "entities", "entities")
    assert found.boxes["ranked"].settings == ("damping 0.5",)
    assert found.boxes["linked"].marks == ("graph", "node vectors")
    assert found.boxes["question entities"].marks == ("model",)


@pytest.mark.parametrize("name", ALL)
def test_nothing_overlaps(name):
    drawing = lay_out(scene(plan_of(name)))
    boxes = {key: (p.x, p.y, p.x + p.w, p.y + p.h) for key, p in drawing.boxes.items()}
    labels = []
    for line in drawing.lines:
        (x, y), told = line.label, line.route.wire.label
        labels.append((x, y - LABEL * 0.75, x + width(told, LABEL), y + 2))
    for (_, one), (_, other) in itertools.combinations(boxes.items(), 2):
        assert not _touch(one, other)
    for one, other in itertools.combinations(labels, 2):
        assert not _touch(one, other)
    for label in labels:
        assert not any(_touch(label, box) for box in boxes.values())
        assert label[0] >= 0 and label[2] <= drawing.width
    segments = []
    for line in drawing.lines:
        for a, b in itertools.pairwise(line.points):
            assert a[0] == b[0] or a[1] == b[1]
            segment = (min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))
            segments.append((line.route.group, line.route.wire, segment))
            inner = tuple(value + shift for value, shift in zip(segment, (-1, -1, 1, 1), strict=True))
            for key, box in boxes.items():
                if key not in (line.route.wire.source, line.route.wire.target):
                    assert not _touch(inner, box), (line.route.wire, key)
        assert min(x for x, _ in line.points) >= 0 and max(x for x, _ in line.points) <= drawing.width
    for (group, _, one), (other_group, _, other) in itertools.combinations(segments, 2):
        if group != other_group:  # lines of two values may cross, and never run on each other
            assert not _along(one, other, 0) and not _along(one, other, 1), (group, other_group)


def _touch(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _along(one, other, axis) -> bool:
    across = 1 - axis
    flat = one[across] == one[across + 2] == other[across] == other[across + 2]
    return flat and min(one[axis + 2], other[axis + 2]) - max(one[axis], other[axis]) > 0.5


@pytest.mark.parametrize("name", ["nested", "tog"])
def test_a_frame_holds_its_loop_and_nothing_else(name):
    found = lay_out(scene(plan_of(name)))
    for frame, x, y, w, h in found.frames:
        for placed in found.boxes.values():
            inside = frame.first <= placed.box.row <= frame.last
            assert (
                x < placed.x and placed.x + placed.w < x + w and y < placed.y and placed.y + placed.h < y + h
            ) == inside


def test_the_same_plan_gives_the_same_bytes():
    assert len({draw(plan_of(name)) for name in ("tog", "tog", "nested")}) == 2
    fresh = cells(["method=tog"])[0][0].plan
    assert draw(fresh) == draw(plan_of("tog"))


HOSTILE = '<script>alert("x")</script> & \'"]]>\x00\x1b 漢字 é\u202e'


def test_hostile_names_are_escaped():
    plan = plan_of("hipporag")
    steps = list(plan.steps)
    steps[0] = dataclasses.replace(steps[0], name=HOSTILE, settings={**steps[0].settings, "weight": HOSTILE * 9})
    steps[1] = dataclasses.replace(steps[1], wires={"seeds": (HOSTILE,)})
    section = dataclasses.replace(plan.sections[0], name=HOSTILE)
    svg = draw(dataclasses.replace(plan, name=HOSTILE, steps=tuple(steps), sections=(section,)), HOSTILE)
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}script")) and "<script" not in svg
    assert "\x00" not in svg and "\x1b" not in svg and "\u202e" not in svg
    assert "漢字 é" in root.find(f"{SVG}title").text
    assert any("漢字" in text for text in texts(svg))


def test_an_attribute_cannot_be_broken_out_of():
    svg = draw(dataclasses.replace(plan_of("zeroshot"), name='" onload="x'))
    assert {name for found in ET.fromstring(svg).iter() for name in found.attrib}.isdisjoint({"onload", "onclick"})


def test_a_plan_that_only_retrieves_is_drawn():
    plan = dataclasses.replace(plan_of("vanilla"), generator=None, sections=())
    assert "chunk.vdb" in texts(draw(plan))


def test_light_and_dark_have_the_same_rules():
    style = ET.fromstring(draw(plan_of("zeroshot"))).find(f"{SVG}style").text
    light, dark = style.split("@media (prefers-color-scheme: dark){")
    names = [rule.partition("{")[0] for rule in dark.rstrip("}").split("}")]
    assert all(f"{name}{{" in light for name in names if name)


def test_the_text_measure():
    assert width("", 10) == 0
    assert width("漢字", 10) == 20
    assert width("WWW", 10) > width("iii", 10)
    assert width("e\u0301", 10) == width("e", 10)
    assert clipped("short", 10, 100) == "short"
    cut = clipped("a rather long text", 10, 60)
    assert cut.endswith("…") and width(cut, 10) <= 60
    assert packed(["aa", "bb", "cc"], 10, 30, 2) == [["aa", "bb"], ["cc"]]


def test_show_draw_writes_a_file_and_says_so(tmp_path, monkeypatch, capsys):
    from graphrag_bench.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["show", "method=original/hipporag", "--draw"]) == 0
    assert capsys.readouterr().out == "wrote original_hipporag.svg\n"
    written = (tmp_path / "original_hipporag.svg").read_text("utf-8")
    assert "Link + PPR | Aggregator | Aggregator | - | -" in written
    assert main(["show", "method=original/hipporag", "--draw", "--out", str(tmp_path / "x.svg")]) == 0
    assert (tmp_path / "x.svg").read_text("utf-8") == written
    capsys.readouterr()
    assert main(["show", "method=original/hipporag", "--draw", "--out", "-"]) == 0
    assert capsys.readouterr().out == written


@pytest.mark.parametrize(
    "arguments",
    [
        ["method=hipporag", "--out", "x.svg"],
        ["somewhere", "--draw"],
        ["method=hipporg", "--draw"],
        ["method=hipporag", "--draw", "--out", "no/such/folder/x.svg"],
        ["method=hipporag", "--draw", "--out", "."],
    ],
)
def test_show_draw_refuses_what_it_cannot_do(arguments, tmp_path, monkeypatch, capsys):
    from graphrag_bench.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["show", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith("graphrag-bench: ") and "Traceback" not in told
    assert not list(tmp_path.iterdir())
