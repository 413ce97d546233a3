"""Overrides that reach into loops, and what goes with a component that is taken away."""

import pytest

from graphrag_bench.cells import cells
from graphrag_bench.errors import Faults

WALK = "method.retrieve.walk.repeat"


def cell(*overrides):
    (made,), _ = cells(["dataset.subset=demo", "llm=scripted", "embedder=hashing", *overrides])
    return made


def test_settings_of_a_loop_and_of_its_steps_can_be_set():
    plan = cell("method=tog", f"{WALK}.max=2", f"{WALK}.steps.chosen.width=5", f"{WALK}.collect=union").plan
    loop = next(step for step in plan.steps if step.name == "walk")
    chosen = next(step for step in loop.steps if step.name == "chosen")
    assert (loop.rounds, loop.collect, chosen.settings["width"]) == (2, "union", 5)


def test_settings_of_a_loop_can_be_swept():
    made, notices = cells(
        ["dataset.subset=demo", "llm=scripted", "embedder=hashing", "method=tog", f"{WALK}.steps.chosen.width=1,3"],
        True,
    )
    assert [one.axes for one in made] == [{f"{WALK}.steps.chosen.width": 1}, {f"{WALK}.steps.chosen.width": 3}]
    assert notices == []


def test_in_a_sweep_over_methods_a_loops_setting_is_idle_where_there_is_no_loop():
    made, notices = cells(
        ["dataset.subset=demo", "llm=scripted", "embedder=hashing", "method=tog,bm25", f"{WALK}.max=2"], True
    )
    assert [one.method for one in made] == ["tog", "bm25"]
    assert [notice for notice in notices if "has no effect on bm25" in notice and f"{WALK}.max=2" in notice]


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (f"{WALK}.mx=2", "loop walk has no setting 'mx'. Did you mean max?"),
        (f"{WALK}.steps.chosn.width=2", "loop walk has no step called 'chosn'. Did you mean chosen?"),
        (
            f"{WALK}.steps.chosen.widht=2",
            "step chosen (relationship.agent) has no setting 'widht'. Did you mean width?",
        ),
        ("method.retrieve.walk.max=2", "walk repeats steps and has no setting 'max'. Write walk.repeat.max."),
        ("method.retrieve.walk.repaet.max=2", "walk repeats steps and has no setting 'repaet'. Did you mean repeat?"),
        ("method.retrieve.wlk.repeat.max=2", "ToG has nothing called 'wlk' under retrieve. Did you mean walk?"),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest_name(override, says):
    with pytest.raises(Faults) as refused:
        cell("method=tog", override)
    (fault,) = refused.value.faults
    assert str(fault).startswith(f"on the command line, {override}: {says}")


def test_the_cutting_order_can_be_set_where_the_page_has_none():
    assert cell("method=vanilla", "method.cut=[chunks]").plan.cut == ("chunks",)


def test_with_a_component_that_is_taken_away_goes_what_the_page_sets_of_it():
    community = cell("method=graphrag_er", "community=leiden", "community.reports=null").config["community"]
    assert "report_tokens" not in community
    assert community["reports"] is None
    assert community["max_size"] == 10
    community = cell("method=graphrag_er", "community=leiden", "community.clusterer=null").config["community"]
    assert community.get("clusterer") is None
