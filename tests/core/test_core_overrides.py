"""What is typed: its grammar, what lists several values, and the cells it makes."""

import pytest

from graphrag_bench.config.overrides import expand, parse
from graphrag_bench.errors import UserError


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("seed=3", "seed", 3),
        ("index.b=0.5", "index.b", 0.5),
        ("limit=null", "limit", None),
        ("execution.redo=true", "execution.redo", True),
        ("output=runs/a b", "output", "runs/a b"),
        ("output='a,b'", "output", "a,b"),
        ('output="3"', "output", "3"),
        ("name=", "name", ""),
        ("evaluation.ks=[1,2]", "evaluation.ks", [1, 2]),
        ('evaluation.metrics=["em",f1]', "evaluation.metrics", ["em", "f1"]),
        ("a.b={c: 1}", "a.b", {"c": 1}),
        ("+seed=1", "seed", 1),
        ("++seed=1", "seed", 1),
        ("method=original/x", "method", "original/x"),
        ("a=${seed}", "a", "${seed}"),
        ('output="Straße, 3"', "output", "Straße, 3"),
        ("a=1e-3", "a", 0.001),
    ],
)
def test_one_value(text, key, value):
    ((made,),) = parse([text])
    assert (made.key, made.value, made.text, made.delete) == (key, value, text, False)
    assert type(made.value) is type(value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1,2", [1, 2]),
        ("a=x,y,z", ["x", "y", "z"]),
        ("a=choice(1,b)", [1, "b"]),
        ("a=range(1,4)", [1, 2, 3]),
        ("a=[1,2],[3]", [[1, 2], [3]]),
        ("a='p,q',r", ["p,q", "r"]),
    ],
)
def test_several_values(text, values):
    (options,) = parse([text])
    assert [option.value for option in options] == values
    assert {option.key for option in options} == {"a"}
    # each stands by itself: its text is an override that says the same
    assert [parse([option.text])[0][0].value for option in options] == values


def test_removal_and_groups():
    ((gone,),) = parse(["~method.top_k"])
    assert (gone.key, gone.delete, gone.is_group) == ("method.top_k", True, False)
    assert parse(["method=bm25"])[0][0].is_group
    assert not parse(["method.top_k=3"])[0][0].is_group


@pytest.mark.parametrize("text", ["seed", "=3", "a=[1,2", "a=(", "a=glob(*)", "a=interval(0,1)", "--help", ""])
def test_what_cannot_be_read_is_one_sentence(text):
    with pytest.raises(UserError) as caught:
        parse([text])
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["Straße", "~/out", "data/北京", "a=b", "100%!"])
def test_a_plain_text_needs_no_quotes_whatever_its_letters(value):
    ((made,),) = parse([f"output={value}"])
    assert (made.key, made.value) == ("output", value)


def test_a_value_that_cannot_be_read_unquoted_is_told_how_to_quote():
    with pytest.raises(UserError, match=r"output=Straße.* wants quotes"):
        parse(["output=Straße,~"])


def spelled(texts, multirun=True):
    found, swept = expand(texts, multirun)
    return [" ".join(item.text for item in cell) for cell in found], swept


def test_the_last_list_turns_fastest_and_a_later_word_stands_where_the_earlier_stood():
    assert spelled(["method=bm25,vanilla", "limit=5", "seed=0,1"]) == (
        [
            "method=bm25 limit=5 seed=0",
            "method=bm25 limit=5 seed=1",
            "method=vanilla limit=5 seed=0",
            "method=vanilla limit=5 seed=1",
        ],
        ["method", "seed"],
    )
    assert spelled(["seed=1", "limit=5", "seed=2"]) == (["seed=2 limit=5"], [])
    assert spelled([]) == ([""], [])
    assert spelled(["seed=7"], multirun=False) == (["seed=7"], [])


def test_commas_are_a_sweep_with_m_only():
    with pytest.raises(UserError) as caught:
        expand(["seed=0", "method=bm25,vanilla"], False)
    assert str(caught.value) == (
        "method=bm25,vanilla lists several values. Add -m to run them all, or quote the value: "
        "'method=\"bm25,vanilla\"'."
    )


EXPERIMENT = """\
description: Two by two
overrides:
  - dataset=sample
  - seed=3
sweep:
  method: [bm25, vanilla]
  limit: [null, 5]
  method.answer.reasoning: [true]
"""


def test_an_experiment_page_sweeps_without_m_and_what_is_typed_stands_above_it(pages):
    pages("experiment/grid.yaml", EXPERIMENT)
    found, swept = expand(["experiment=grid"], False)
    assert swept == ["method", "limit"]
    assert [{item.key: item.value for item in cell} for cell in found] == [
        {"dataset": "sample", "seed": 3, "method": method, "limit": limit, "method.answer.reasoning": True}
        for method in ("bm25", "vanilla")
        for limit in (None, 5)
    ]
    found, swept = spelled(["method=zeroshot", "experiment=grid", "limit=1", "output=o"], multirun=False)
    assert (found, swept) == (
        ["dataset=sample seed=3 method=zeroshot limit=1 method.answer.reasoning=True output=o"],
        [],
    )


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (
            "overides: []",
            "conf/experiment/bad.yaml: an experiment has description, overrides, sweep, compose and report, not 'overides'",
        ),
        ("overrides: {seed: 1}", "overrides is a list of key=value"),
        ("sweep: [seed]", "sweep a mapping of lists"),
        ("description: x\nsweep:\n  seed: 3", "conf/experiment/bad.yaml:3: seed wants a list of values"),
        ("sweep:\n  seed: []", "conf/experiment/bad.yaml:2: seed wants a list of values"),
        ("overrides: [seed]", "'seed' cannot be read"),
        ("- 3", "conf/experiment/bad.yaml:1: a page is a mapping of settings, and this is a list"),
        ("a: [1,\nb: 2", "conf/experiment/bad.yaml:2: this is not valid YAML"),
    ],
)
def test_a_broken_experiment_page(pages, page, says):
    pages("experiment/bad.yaml", page)
    with pytest.raises(UserError) as caught:
        expand(["experiment=bad"], False)
    assert says in str(caught.value)


def test_one_experiment_at_a_time_and_only_one_that_is_there(pages):
    with pytest.raises(UserError, match="One experiment at a time"):
        expand(["experiment=demo,demo"], True)
    with pytest.raises(UserError, match=r"here is no experiment called 'dmo'\. Did you mean demo\?"):
        expand(["experiment=dmo"], False)
