"""What `plan` says before a run, compared with what the run's ledger says after it."""

import json
import re
from collections import Counter

import pytest

from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.method import Loop, Plan, Step
from graphrag_bench.pipeline.sizes import Sizes, calls_of
from graphrag_bench.registry import REGISTRY

NAMES = ("Ada Brown", "Port Lunde", "Grey Mill", "Castle Iver", "Tomas Reed", "Lake Osmo", "Mary Holt", "Fort Ellis")
STAGES = ("extraction", "graph", "reports", "question", "retrieve", "answer")
LINE = re.compile(r"\s{2,}")


@pytest.fixture
def tiny(bench):
    """A corpus of twelve passages and three questions over eight names, and a command line wide enough for the table."""
    folder = bench.root / "data"
    folder.mkdir()
    with (folder / "corpus.jsonl").open("w") as corpus:
        for at in range(12):
            one, two, three = (NAMES[(at * step + step) % len(NAMES)] for step in (1, 3, 5))
            text = (
                f"{one} is known for {two}. In {1900 + at} {two} was sold to {three}, who lived near {NAMES[at % 5]}."
            )
            corpus.write(json.dumps({"id": f"d{at}", "title": one, "text": text}) + "\n")
    with (folder / "questions.jsonl").open("w") as questions:
        for at in range(3):
            asked = f"Who sold {NAMES[at]} to {NAMES[at + 3]}?"
            gold = {"answers": [NAMES[at]], "gold_passages": [f"d{at}"]}
            questions.write(json.dumps({"id": f"q{at}", "question": asked, **gold}) + "\n")
    bench.env["COLUMNS"] = "200"
    return bench


def planned(told):
    """Return {stage: (sign, calls)} of the one cell in a plan's table, and {stage: what stands in its last column}."""
    found, state = {}, {}
    for line in told.out.splitlines():
        parts = [part for part in LINE.split(line.strip()) if part]
        if len(parts) >= 7 and parts[0] != "to pay" and parts[2].lstrip("≤~ ").replace(",", "").isdigit():
            sign, _, count = parts[2].rpartition(" ")
            found[parts[1]] = (sign, int(count.replace(",", "")))
            state[parts[1]] = parts[7] if len(parts) > 7 else ""
    return found, state


def asked(bench):
    """Return {stage: calls} of the ledger, repairs apart."""
    (path,) = bench.out.rglob("ledger.jsonl")
    return Counter(row["stage"] for row in bench.rows(path) if not row["purpose"].endswith(".repair"))


EXACT = {
    "hipporag": {"extraction": 24, "question": 3, "answer": 3},
    "lgraphrag": {"extraction": 24, "answer": 3},
    "ggraphrag": {"extraction": 24},
    "tog": {"extraction": 24, "question": 3, "answer": 3},
    "kgp": {"answer": 3},
    "raptor_k": {"answer": 3},
    "cheaprag": {"extraction": 24},
    "hlightrag": {"extraction": 24, "question": 3, "answer": 3},
}
SIGNS = {
    "lgraphrag": {"graph": "~", "reports": "~"},
    "ggraphrag": {"graph": "~", "reports": "~", "answer": "~"},
    "tog": {"retrieve": "≤"},
    "kgp": {"retrieve": "≤"},
    "raptor_k": {"graph": "≤"},
    "cheaprag": {"graph": "~", "reports": "~", "answer": "≤"},
    "hlightrag": {"graph": "~"},
}
LOOSE = {("tog", "retrieve"), *((method, "graph") for method in ("lgraphrag", "ggraphrag", "cheaprag", "hlightrag"))}


@pytest.mark.parametrize("method", EXACT)
def test_a_plan_says_what_the_run_then_asks(tiny, method):
    data = ("dataset=folder", f"dataset.path={tiny.root / 'data'}", f"method={method}")
    told = tiny.run(*data, verb="plan")
    assert (told.code, told.err) == (0, "")
    before, _ = planned(told)
    assert tiny.run(*data).code == 0
    actual = asked(tiny)
    assert set(actual) <= set(before)
    exact = {stage: count for stage, (sign, count) in before.items() if stage in STAGES and not sign and count}
    assert exact == EXACT[method] == {stage: actual[stage] for stage in exact}
    assert {stage: sign for stage, (sign, _) in before.items() if sign} == SIGNS.get(method, {})
    for stage in SIGNS.get(method, {}):
        assert actual[stage] <= before[stage][1]
        if (method, stage) not in LOOSE:  # a bound that a loop, or a rule for large corpora, reaches rarely
            assert before[stage][1] <= 3 * actual[stage]

    offline = {"extraction", "graph", "reports"}
    after, state = planned(tiny.run(*data, f"output={tiny.root / 'other'}", verb="plan"))
    assert {stage: after[stage] for stage in offline & after.keys()} == {
        stage: ("", actual[stage]) for stage in offline & after.keys()
    }
    assert all(state[stage] == "in the store" for stage in after if stage not in ("question", "retrieve", "answer"))
    if method in ("ggraphrag", "cheaprag"):  # now the communities are known
        assert after["answer"] == ("≤", actual["answer"])


def test_a_plan_of_an_approximate_index_says_when_its_files_are_there(tiny):
    pytest.importorskip("hnswlib")
    data = ("dataset=folder", f"dataset.path={tiny.root / 'data'}", "method=vanilla", "index=hnswlib")
    assert planned(tiny.run(*data, verb="plan"))[1]["chunk vectors' search"] == ""
    assert tiny.run(*data).code == 0
    _, state = planned(tiny.run(*data, f"output={tiny.root / 'other'}", verb="plan"))
    assert state["chunk vectors"] == state["chunk vectors' search"] == "in the store"


def test_a_component_that_says_nothing_counts_one_call_a_unit():
    component = REGISTRY.get("clusterer", "leiden")
    assert "calls" not in component.extra
    found = calls_of(component, {}, Scale(), 7)
    assert (found.calls, found.bound) == (7, "about")


def test_a_sum_is_as_uncertain_as_its_most_uncertain_part():
    exact, most, about = Calls(1), Calls(2, 20, 2, "at most"), Calls(4, 4, 4, "about")
    assert exact + exact == Calls(2)
    assert exact + most == most + exact == Calls(3, 20, 2, "at most")
    assert (most + about).bound == (about + most).bound == "about"


def test_a_loop_is_reckoned_to_its_last_round():
    """ToG by hand: eight entities, three relations each; from the second round on, the three entities that were kept."""

    def step(name, operator, wires, **settings):
        component = REGISTRY.get("operator", operator)
        default = {key: setting.default for key, setting in component.settings.items()}
        return Step(name, component, wires, "max", {**default, **settings})

    linked = step("linked", "node.link", {}, by="entities", top_k=1)
    start = step("topics", "frontier.start", {"nodes": ("linked",)})
    chosen = step("chosen", "relationship.agent", {"frontier": ("frontier",)}, width=3)
    kept = step("frontier", "node.agent", {"chosen": ("chosen",)}, width=3)
    loop = Loop("walk", 3, {"frontier": "topics"}, (chosen, kept), None, "last")
    sizes = Sizes(Plan("walk", (), (linked, start, loop), (), (), None), Scale(questions=2, mentions=8))
    assert sizes.asked.calls == 2 * ((8 + 24) + 2 * (3 + 9))
    assert sizes.asked.bound == "at most"
    assert sizes.of("walk.frontier.nodes") == 3
    assert not sizes.silent
