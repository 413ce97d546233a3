"""Composed cells: whose word counts, what is refused and how it is said, and that every page and field is known."""

import copy
import dataclasses
from pathlib import Path

import pytest
import yaml

from graphrag_bench.cells import cells, reaches
from graphrag_bench.config import sources
from graphrag_bench.config.compose import compose
from graphrag_bench.config.overrides import parse
from graphrag_bench.config.schema import GROUPS, PLAIN_GROUPS, RUN, SELECTORS, STAGES, type_name
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.registry import REGISTRY, REQUIRED

CONF = Path(__file__).parents[2] / "conf"


def one(*overrides):
    (cell,), _ = cells(list(overrides))
    return cell


def refused(*overrides, multirun=False):
    with pytest.raises(Faults) as caught:
        cells(list(overrides), multirun)
    return [str(fault) for fault in caught.value.faults]


def test_the_command_line_stands_above_what_the_method_requires_and_that_above_the_defaults():
    assert one("method=bm25").choices["graph"] == "none"
    cell = one("method=hipporag", "embedder=hashing", "embedder.dim=64", "seed=5", "+limit=3", "output='a,b'")
    assert cell.choices["graph"] == "kg"
    assert cell.config["graph"]["builder"] == "kg"
    assert cell.config["embedder"] == {"backend": "hashing", "dim": 64}
    assert (cell.config["seed"], cell.config["limit"], cell.config["output"]) == (5, 3, "a,b")
    assert cell.config["llm"]["seed"] == 5  # the page reads the run's
    said = refused("method=hipporag", "graph=none")
    assert said
    assert all("and this method builds no graph" in fault for fault in said)


def test_interpolations_are_resolved_in_pages_and_on_the_command_line():
    cell = one("method=bm25", "method.top_k=7", "retrieval_depth=33", "limit=${method.top_k}")
    assert cell.config["method"]["context"]["chunks"]["top_k"] == 7
    assert cell.config["method"]["retrieve"]["chunks"]["top_k"] == 33
    assert cell.config["limit"] == 7
    assert cell.plan.sections[0].top_k == 7


def test_unknown_pages_are_named_with_the_nearest():
    (said,) = refused("method=hiporag")
    assert said.endswith("here is no method called 'hiporag'. Did you mean hipporag?")
    assert "here is no graph called 'None'." in refused("graph=null")[0]


def test_every_fault_of_every_kind_at_once_each_with_its_place():
    said = refused(
        "method=hipporag",
        "sed=3",
        "indx.k1=2",
        "embedder=hashing",
        "embedder.dims=3",
        "index.k1=high",
        "logging.display=liv",
        "batch_size=0",
        "method.retrieve.rnked.damping=0.3",
        "method.retrieve.ranked.dampng=0.3",
        "method.retrieve.ranked.damping=high",
        "method.answer.reasonng=true",
        "method.topk=3",
        "method.context.chnks.top_k=1",
        "graph.extractor=opnie",
        "evaluation.metrics=[acuracy]",
        "execution.budget_money=cheap",
        "~method.notes",
    )
    wanted = [
        ("sed=3: there is no setting called 'sed'.", "Did you mean seed?"),
        ("indx.k1=2: there is no group called 'indx'.", "Did you mean index?"),
        ("embedder.dims=3: embedder hashing has no setting 'dims'.", "Did you mean dim?"),
        ("index.k1=high: index wants k1 as float, and found 'high'.", "The default is 1.5."),
        (
            "logging.display=liv: logging wants display as auto | live | plain | none, and found 'liv'.",
            "Did you mean live?",
        ),
        ("batch_size=0: a run wants batch_size to be at least 1, and found 0.", ""),
        (
            "method.retrieve.rnked.damping=0.3: HippoRAG has nothing called 'rnked' under retrieve.",
            "Did you mean ranked?",
        ),
        ("method.retrieve.ranked.dampng=0.3: step ranked (node.ppr) has no setting 'dampng'.", "Did you mean damping?"),
        (
            "method.retrieve.ranked.damping=high: node.ppr wants damping as float, and found 'high'.",
            "The default is 0.85.",
        ),
        ("method.answer.reasonng=true: generator direct has no setting 'reasonng'.", "Did you mean reasoning?"),
        ("method.topk=3: a method has no setting 'topk'.", "Did you mean top_k?"),
        ("method.context.chnks.top_k=1: HippoRAG has nothing called 'chnks' under context.", "Did you mean chunks?"),
        ("graph.extractor=opnie: No extractor is called 'opnie'.", "Did you mean openie?"),
        ("evaluation.metrics=[acuracy]: No metric is called 'acuracy'.", "Did you mean accuracy?"),
        ("execution.budget_money=cheap: execution wants budget_money as float | null, and found 'cheap'.", ""),
        ("~method.notes: there is no method.notes to remove.", "Leave it out."),
    ]
    for problem, fix in wanted:
        assert [s for s in said if s.startswith(f"on the command line, {problem}") and fix in s], (problem, said)
    assert len(said) == len(wanted), said


def test_faults_of_a_page_have_its_file_and_line(pages):
    pages("index/odd.yaml", "backend: exact\nk1: high\nk2: 3\n")
    pages("embedder/odd.yaml", "backend: hshing\ndim: 3\n")
    pages(
        "method/odd.yaml",
        "name: Odd\nretrieve:\n  a: {operator: chunk.bm26}\n  b:\n    operator: chunk.bm25\n    top: 3\n"
        "context: {c: {from: b}}\nanswer: {generator: direct}\n",
    )
    assert sorted(refused("method=odd", "index=odd", "embedder=odd")) == [
        "conf/embedder/odd.yaml:1: No embedder is called 'hshing'. Did you mean hashing?",
        "conf/index/odd.yaml:2: index wants k1 as float, and found 'high'. The default is 1.5.",
        "conf/index/odd.yaml:3: index has no setting 'k2'. Did you mean k1?",
        "conf/method/odd.yaml:3: no operator is called 'chunk.bm26'. Did you mean chunk.bm25?",
        "conf/method/odd.yaml:6: chunk.bm25 has no setting 'top'. Did you mean top_k?",
    ]


def test_a_method_built_on_another_says_where_each_part_stands(pages):
    pages("method/child.yaml", "defaults: [/method/bm25@_here_]\nname: Child\ntop_k: none\n")
    said = refused("method=child")
    assert any(fault.startswith("conf/method/child.yaml:3: a method wants top_k as int | null") for fault in said)
    assert any(fault.startswith("conf/method/bm25.yaml:7: section chunks wants top_k") for fault in said)
    pages("method/child.yaml", "defaults: [/method/hipporag@_here_]\nname: Child\ntop_k: 9\n")
    cell = one("method=child")
    assert (cell.plan.name, cell.choices["graph"], cell.plan.sections[0].top_k) == ("Child", "kg", 9)


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("name: [X\nretrieve: {", "conf/method/bad.yaml:2: this is not valid YAML"),
        ("just a text", "conf/method/bad.yaml:1: a page is a mapping of settings, and this is a str"),
        (b"name: \xff\xfe", "conf/method/bad.yaml: the page is not UTF-8 text"),
        (
            "name: X\nrequires: {grph: kg}",
            "conf/method/bad.yaml:2: requires names the group 'grph', which does not exist. Did you mean graph?",
        ),
        ("name: X\nrequires: {graph: kgg}", "here is no graph called 'kgg'"),
        (
            "name: X\nrequires: [graph]\nanswer: {generator: direct}",
            "conf/method/bad.yaml:2: a method wants requires as",
        ),
        (
            "name: X\nanswer: {generator: direct, max_tokens: '${nope}'}",
            "conf/method/bad.yaml:2: the setting method.answer.max_tokens",
        ),
        ("", "conf/method/bad.yaml:1: the method has no name"),
    ],
)
def test_a_broken_method_page_is_said_with_its_line(pages, page, says):
    pages("method/bad.yaml", page)
    assert any(says in fault for fault in refused("method=bad")), refused("method=bad")


def test_a_setting_that_must_be_given_is_said_with_its_line():
    assert refused("dataset=folder") == [
        "conf/dataset/folder.yaml:4: the setting dataset.path has no usable value (Missing mandatory value: path). "
        "Give dataset.path=… on the command line or in the page."
    ]
    assert one("dataset=folder", "dataset.path=somewhere").config["dataset"]["path"] == "somewhere"
    (said,) = refused("llm=replay")
    assert said == "conf/llm/replay.yaml:1: chat_model replay needs the setting path. Give llm.path=… (str)."


def test_what_one_cell_cannot_use_another_may():
    found, notices = cells(["method=bm25,hipporag", "method.retrieve.ranked.damping=0.3,0.5", "embedder=hashing"], True)
    # the sweep over a setting BM25 has not gives one cell of it, not two alike
    assert [(cell.method, cell.axes) for cell in found] == [
        ("bm25", {}),
        ("hipporag", {"method.retrieve.ranked.damping": 0.3}),
        ("hipporag", {"method.retrieve.ranked.damping": 0.5}),
    ]
    assert len(notices) == 2
    assert all("method.retrieve.ranked.damping=0." in notice and "bm25" in notice for notice in notices)
    said = refused("method=bm25,zeroshot", "method.retrieve.ranked.damping=0.3", multirun=True)
    assert len(said) == 2  # one for each method that lacks it: nobody has a use for it


def test_cells_have_folders_of_their_own():
    found, _ = cells(["method=bm25,zeroshot", "seed=0,1", "output=~/out", "llm=scripted"], True)
    folders = [cell.folder("sample") for cell in found]
    assert folders == [
        Path("~/out").expanduser() / method / "sample" / f"seed={seed}"
        for method in ("bm25", "zeroshot")
        for seed in (0, 1)
    ]
    assert one("method=original/hipporag").folder("a/b") == Path("runs/original_hipporag/a_b")


def test_removal_gives_the_default_back_and_only_of_what_is_there():
    cell = one("method=bm25", "~limit", "~index.k1", "~method.top_k", "method.context.chunks.top_k=2")
    assert (cell.config["limit"], cell.config["index"]["k1"]) == (None, 1.5)
    assert "top_k" not in cell.config["method"]
    (said,) = refused("embedder=wordllama", "~embedder.backend")
    assert (
        said
        == "conf/embedder/wordllama.yaml:1: a run without embedder needs the setting backend. Give embedder.backend=… (str)."
    )
    said = refused("method=zeroshot", "~method.context", "~method.answer.reasoning")
    assert said == [
        "on the command line, ~method.context: there is no method.context to remove. Leave it out.",
        "on the command line, ~method.answer.reasoning: there is no method.answer.reasoning to remove. Leave it out.",
    ]


def test_a_page_of_a_plain_group_may_leave_settings_out(pages):
    pages("index/short.yaml", "backend: exact\nb: 0.5\n")
    written = one("method=bm25", "index=short").config["index"]
    assert written == {name: s.default for name, s in PLAIN_GROUPS["index"].items()} | {"backend": "exact", "b": 0.5}


def test_a_component_that_does_not_exist_is_said_where_it_is_named_whatever_else_is_set():
    assert refused(
        "method=zeroshot",
        "llm.backend=scriptd",
        "llm.seed=3",
        "method.answer.generator=dirct",
        "method.answer.max_tokens=9",
    ) == [
        "on the command line, llm.backend=scriptd: No chat_model is called 'scriptd'. Did you mean scripted?",
        "conf/method/zeroshot.yaml:4: no generator is called 'dirct'. Did you mean direct?",
    ]


def test_a_selector_is_read_before_the_settings_it_brings():
    cell = one("method=bm25", "llm.replies=Paris", "~llm.model", "~llm.window", "llm.backend=scripted")
    assert cell.config["llm"]["replies"] == "Paris"


def test_a_graph_without_an_extractor():
    (said,) = refused("method=hipporag", "graph.extractor=null")
    assert said == (
        "on the command line, graph.extractor=null: the graph kg needs an extractor. "
        "Write graph.extractor=llm, =openie or =noun_phrase."
    )


def changed(cell, **values):
    """The cell with other values; ``a__b`` is the key a.b."""
    config = copy.deepcopy(cell.config)
    for name, value in values.items():
        *parents, last = name.split("__")
        node = config
        for part in parents:
            node = node[part]
        node[last] = value
    return dataclasses.replace(cell, config=config)


def test_what_can_change_an_answer_is_keyed_and_nothing_else():
    cell = one("method=bm25", "llm=scripted", "llm.delay_s=0.0")
    for name, value in {
        "output": "elsewhere",
        "batch_size": 1,
        "execution__concurrency": 1,
        "execution__redo": True,
        "logging__display": "none",
        "llm__delay_s": 2.0,
    }.items():
        assert changed(cell, **{name: value}).keyed() == cell.keyed(), name
    for name, value in {
        "seed": 1,
        "limit": 3,
        "until": "retrieval",
        "retrieval_depth": 5,
        "method__top_k": 2,
        "index__k1": 1.2,
        "llm__seed": 3,
        "evaluation__bootstrap": 10,
        "chunking__size": 300,
        "graph__builder": "kg",
    }.items():
        assert changed(cell, **{name: value}).keyed() != cell.keyed(), name


def test_how_far_a_run_goes():
    assert [stage for stage in STAGES if reaches({"until": "retrieval"}, stage)] == ["graph", "index", "retrieval"]
    assert all(reaches({"until": "score"}, stage) for stage in STAGES)


# -- every field is classed, every page composes --


def test_every_field_of_the_run_and_of_the_plain_groups_is_classed_as_inert_or_not():
    """A new field must be put into graphrag_bench/config/schema.py and classed: does it change an answer or a score?"""
    own = yaml.safe_load((CONF / "config.yaml").read_text("utf-8"))
    assert set(own) - {"defaults"} == set(RUN)
    assert {group for entry in own["defaults"] if isinstance(entry, dict) for group in entry} == set(GROUPS)
    for group, fields in PLAIN_GROUPS.items():
        written = [yaml.safe_load(page.read_text("utf-8")) for page in sorted((CONF / group).rglob("*.yaml"))]
        assert written
        for page in written:
            own = {selector.key for selector in SELECTORS.get(group, ())}
            assert set(fields) <= set(page) and (own or set(page) == set(fields)), group
    for setting in (*RUN.values(), *(s for fields in PLAIN_GROUPS.values() for s in fields.values())):
        assert isinstance(setting.inert, bool)
    assert set(GROUPS) == {"method", *SELECTORS, *PLAIN_GROUPS}


def test_the_pages_say_the_defaults_that_the_schema_says():
    own = yaml.safe_load((CONF / "config.yaml").read_text("utf-8"))
    assert {name: own[name] for name in RUN} == {name: setting.default for name, setting in RUN.items()}
    for group, page in (("index", "exact"), ("execution", "local"), ("logging", "default"), ("evaluation", "default")):
        written = yaml.safe_load((CONF / group / f"{page}.yaml").read_text("utf-8"))
        assert {name: written[name] for name, s in PLAIN_GROUPS[group].items() if s.default is not REQUIRED} == {
            name: s.default for name, s in PLAIN_GROUPS[group].items() if s.default is not REQUIRED
        }


@pytest.mark.parametrize("name", sorted(sources.pages("method")))
def test_every_method_page_composes_and_plans(name):
    cell = one(f"method={name}")
    assert cell.plan.name == cell.config["method"]["name"]
    assert cell.plan.generator is not None


def needed(group, name):
    """Overrides for what a page leaves to the user."""
    page = sources.read_page(sources.page(group, name))
    given = [f"{group}.{key}=x" for key, value in page.items() if value == "???"]
    if group in SELECTORS and page.get(SELECTORS[group][0].key):
        component = REGISTRY.get(SELECTORS[group][0].kind, page[SELECTORS[group][0].key])
        given += [
            f"{group}.{key}={'x' if setting.annotation is str else 1}"
            for key, setting in component.settings.items()
            if setting.default is REQUIRED and key not in page
        ]
    return given


def test_every_page_of_every_other_group_composes():
    groups = {group: sorted(sources.pages(group)) for group in GROUPS if group != "method"}
    for turn in range(max(map(len, groups.values()))):  # the n-th page of every group together
        chosen = {group: names[turn % len(names)] for group, names in groups.items()}
        texts = [f"{group}={name}" for group, name in chosen.items()]
        texts += [text for group, name in chosen.items() for text in needed(group, name)]
        made = compose(tuple(options[0] for options in parse(texts)))
        assert (made.faults, made.unused) == ([], {}), chosen
        assert made.choices | chosen == made.choices


@pytest.mark.parametrize("name", sorted(sources.pages("experiment")))
def test_every_experiment_page_makes_cells(name):
    found, _ = cells([f"experiment={name}"])
    assert len({str(cell.folder("d")) for cell in found}) == len(found) > 0


def test_no_page_lies_outside_the_groups():
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == {*GROUPS, "experiment"}


@pytest.mark.parametrize(
    ("annotation", "spelled"),
    [
        (int, "int"),
        (int | None, "int | null"),
        (float | str, "float | str"),
        (list[int], "list[int]"),
        (str | list[str], "str | list[str]"),
        (dict[str, int] | None, "dict[str, int] | null"),
    ],
)
def test_types_are_named_as_a_person_would(annotation, spelled):
    assert type_name(annotation) == spelled


def test_an_entry_point_of_pages_that_is_not_there_is_one_sentence(monkeypatch):
    from importlib.metadata import EntryPoint

    broken = EntryPoint("stranger", "no_such_package", "graphrag_bench.conf")
    monkeypatch.setattr(sources, "entry_points", lambda group: [broken])
    sources.roots.cache_clear()
    try:
        with pytest.raises(
            UserError,
            match=r"^The entry point stranger = no_such_package \(group graphrag_bench\.conf\) cannot be imported",
        ):
            sources.roots()
    finally:
        sources.roots.cache_clear()


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("kag", "method.retrieve.planned.max_steps=0"),
        ("kag", "graph.names_a_call=0"),
        ("kag", "graph.concept_tokens=0"),
        ("kag", "graph.is_a_weight=-1"),
        ("hipporag2", "method.retrieve.walked.passage_edge=-1"),
        ("hipporag2", "method.retrieve.walked.passage_weight=-0.5"),
        ("hirag", "method.retrieve.keys.top_m=0"),
        ("hirag", "method.retrieve.bridge.max_hops=-1"),
        ("hirag", "graph.max_change=-1"),
        ("hirag", "graph.max_summaries=0"),
        ("ket_rag", "method.retrieve.near.candidates=0"),
        ("ket_rag", "graph.share=0"),
        ("ket_rag", "graph.share=1.5"),
        ("ket_rag", "graph.nearest_chunks=0"),
        ("ket_rag", "graph.keyword_sentences=0"),
    ],
)
def test_a_setting_out_of_its_range_is_found_before_anything_runs(method, setting):
    (said,) = refused(f"method={method}", setting)
    assert said.startswith(f"on the command line, {setting}: ")
    assert f"found {setting.partition('=')[2]}" in said
