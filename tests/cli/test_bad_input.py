"""Every kind of bad input: exit code 2, one message with the place and a fix, nothing lost, and the next good run works."""

import errno
import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_bench.config import sources

LINE = '{"id": "a", "title": "A", "text": "Ada built the bridge in Rome."}\n'
ASKED = '{"id": "q", "question": "Who built the bridge?", "answers": ["Ada"], "gold_passages": ["a"]}\n'
CORPUS, QUESTIONS = "data/corpus.jsonl", "data/questions.jsonl"
DATA = ("dataset=folder", "dataset.path={root}/data")
PAGE = """name: Mine
requires: {graph: kg}
question: {entities: {by: rule}}
retrieve:
  linked: {operator: node.link}
  ranked: {operator: node.ppr, seeds: linked}
  relationships: {operator: relationship.aggregator, nodes: ranked}
  chunks: {operator: chunk.aggregator, relationships: relationships}
context: {chunks: {from: chunks, top_k: 4}}
answer: {generator: direct}
"""
HIPPO, LOCAL, TOG, WALK = "method=hipporag", "method=lgraphrag", "method=tog", "method.retrieve.walk"
LOOP = """name: Mine
requires: {graph: kg}
question: {entities: {by: rule}}
retrieve:
  linked: {operator: node.link}
  topics: {operator: frontier.start, nodes: linked}
  walk:
    repeat:
      max: 2
      carry: {frontier: topics}
      steps:
        chosen: {operator: relationship.agent, frontier: frontier}
        near: {operator: node.onehop, nodes: chosen.nodes, relationships: chosen.relationships}
        frontier: {operator: node.agent, chosen: chosen, candidates: near}
        paths: {operator: subgraph.grow, frontier: frontier, paths: null}
        enough: {operator: question.enough, paths: paths}
      until: enough
context: {paths: {from: walk.paths}}
answer: {generator: direct}
"""


def _data(place: str, fix: str, **files: Any) -> dict[str, Any]:
    names = {"corpus": CORPUS, "questions": QUESTIONS}
    return {"args": DATA, "place": f"{{root}}/data/{place}", "fix": fix,
            "files": {names.get(name, name): content for name, content in files.items()}}


def _set(*args: str, fix: str, place: str = "", late: bool = False) -> dict[str, Any]:
    return {"args": args, "place": place or f"on the command line, {args[-1]}: ", "fix": fix, "late": late}


def _page(old: str, new: str, line: int, fix: str) -> dict[str, Any]:
    assert old in PAGE
    return _text(PAGE.replace(old, new), line, fix)


def _text(page: str | bytes, line: int | str, fix: str) -> dict[str, Any]:
    return {"args": ("method=mine",), "files": {"conf/method/mine.yaml": page},
            "place": f"conf/method/mine.yaml:{line}" if line else "conf/method/mine.yaml", "fix": fix}


def _loop(old: str, new: str, line: int, fix: str) -> dict[str, Any]:
    assert old in LOOP
    return _text(LOOP.replace(old, new), line, fix)


def _trial(page: str, place: str, fix: str, group: str = "experiment") -> dict[str, Any]:
    return {"args": (f"{group}=mine",), "files": {f"conf/{group}/mine.yaml": page}, "place": place, "fix": fix}


# name → args (a {root} in them is the test's folder), files to write first, the place and the fix the message must hold.
# ``late``: met only when the run gets there, so `check` does not say it.
BAD: dict[str, dict[str, Any]] = {
    # data
    "dataset folder missing": {"args": ("dataset=folder", "dataset.path={root}/nowhere"),
                               "place": "{root}/nowhere does not exist", "fix": "Check the dataset's `path`"},
    "dataset folder is a file": {"args": ("dataset=folder", "dataset.path={root}/data/corpus.jsonl"),
                                 "place": "{root}/data/corpus.jsonl is a file", "fix": "Give the folder"},
    "no corpus": _data("", "It should hold corpus.jsonl", corpus=None) | {"place": "{root}/data has no corpus"},
    "corpus is a folder": _data("corpus.jsonl cannot be read", "Name a file", corpus=None,
                                **{"data/corpus.jsonl/x": "x"}),
    "empty corpus": _data("corpus.jsonl:1: ", "Give it one JSON object a line", corpus=""),
    "byte order mark": _data("corpus.jsonl:1: ", "without BOM", corpus="\ufeff" + LINE),
    "invalid UTF-8": _data("corpus.jsonl:2: byte 19", "Save the file as UTF-8",
                           corpus=LINE.encode() + b'{"id":"b","text":"\xff"}\n'),
    "UTF-16": _data("corpus.jsonl:1: ", "Save it as UTF-8", corpus=LINE.encode("utf-16")),
    "truncated gzip": _data("corpus.jsonl.gz:", "compress the file again", corpus=None,
                            **{"data/corpus.jsonl.gz": gzip.compress(os.urandom(5000).hex().encode())[:-40]}),
    "broken JSON line": _data("corpus.jsonl:2: ", "Mend the line", corpus=LINE + '{"id": "b", "text"\n'),
    "indented JSON": _data("corpus.jsonl:1: ", "one whole object a line", corpus='[\n {"id": "a"}\n]\n'),
    "empty text": _data("corpus.jsonl:2: ", "Fill it in", corpus=LINE + '{"id": "b", "text": "  "}\n'),
    "text missing": _data("corpus.jsonl:2: ", 'Add "text"', corpus=LINE + '{"id": "b"}\n'),
    "wrong type": _data("corpus.jsonl:2: ", "Write a string", corpus=LINE + '{"id": "b", "text": 5}\n'),
    "duplicate id": _data("corpus.jsonl:2: ", "Give each its own id", corpus=LINE + LINE),
    "gold not in the corpus": _data("questions.jsonl:1: ", "Add it to the corpus", questions=ASKED.replace('["a"]', '["z"]')),
    "answers not a list": _data("questions.jsonl:1: ", "Write a list", questions=ASKED.replace('["Ada"]', '"Ada"')),
    "no questions": _data("", "Add a questions file", questions=None) | {"place": "dataset data has no questions"},
    "unsound card": _data("card.yaml:2", "field: value", **{"data/card.yaml": "name: [\n"}),
    "openie without triples": _data("", "Use graph.extractor=llm")
    | {"args": (*DATA, HIPPO, "graph.extractor=openie"), "place": "dataset data brings no triples"},
    "entities not given": _data("", "Set method.question.entities.by=rule")
    | {"args": (*DATA, HIPPO, "method.question.entities.by=given"), "place": "dataset data gives no question entities"},
    # names
    "unknown method": _set("method=hiporag", fix="Did you mean hipporag?"),
    "unknown dataset": _set("dataset=smaple", fix="Did you mean sample?"),
    "unknown llm": _set("llm=scritped", fix="Did you mean scripted?"),
    "unknown group": _set("retriever.top_k=1", fix="Known: chunking, community, dataset"),
    "unknown setting": _set("sede=3", fix="Did you mean seed?"),
    "unknown verb": {"args": (), "verb": "runn", "place": "'runn'", "fix": "choose from", "usage": True},
    "unknown flag": {"args": ("--fast",), "place": "unrecognized arguments: --fast", "fix": "usage:", "usage": True},
    "unknown experiment": _set("experiment=dmo", fix="Did you mean demo?"),
    "unknown operator": _set(HIPPO, "method.retrieve.ranked.operator=node.prr", fix="Did you mean node.ppr?"),
    "unknown metric": _set("evaluation.metrics=[acuracy]", fix="Did you mean accuracy?"),
    "metric without a number": _set("evaluation.metrics=[recall@0]", fix="recall@5"),
    "unknown extractor": _set(HIPPO, "graph.extractor=lm", fix="Did you mean llm?"),
    "unknown builder": _set(HIPPO, "graph.builder=kgg", fix="Did you mean kg?"),
    "unknown backend": _set("llm.backend=scriptd", fix="Did you mean scripted?"),
    "unknown embedder": _set("embedder.backend=hash", fix="Did you mean hashing?"),
    "unknown chunker": _set("chunking.chunker=token", fix="Did you mean tokens?"),
    "unknown loader": _set("dataset.loader=foldr", fix="Did you mean folder?"),
    "unknown generator": {"args": ("method.answer.generator=dirct",), "place": "generator is called 'dirct'",
                          "fix": "Did you mean direct?"},
    "unknown converter": _set(HIPPO, "method.question.entities.by=mdel", fix="Did you mean entities.model?"),
    "unknown tokenizer": _set("chunking.tokenizer=regexp", fix="Take regex", place="tokenizer 'regexp'", late=True),
    # values
    "limit of letters": _set("limit=abc", fix="The default is None"),
    "limit 0": _set("limit=0", fix="Write limit: 1 or more"),
    "batch of 0": _set("batch_size=0", fix="Write batch_size: 1 or more"),
    "half a batch": _set("batch_size=1.5", fix="The default is 64"),
    "negative seed": _set("seed=-1", fix="Write seed: 0"),
    "interval above 1": _set("evaluation.interval=95", fix="The default is 0.95"),
    "damping in words": _set(HIPPO, "method.retrieve.ranked.damping=high", fix="The default is 0.85"),
    "damping of 1": _set(HIPPO, "method.retrieve.ranked.damping=1.0", fix="Correct its settings", place="found 1.0"),
    "damping above 1 in a sweep": _set("-m", HIPPO, "method.retrieve.ranked.damping=1.5,0.5", fix="Correct its settings",
                                       place="step 'ranked' cannot serve the probe: node.ppr: damping"),
    "unknown stage": _set("until=indx", fix="Did you mean index?"),
    "unknown display": _set("logging.display=loud", fix="Known: auto"),
    "unknown subset": _set("dataset.subset=al", fix="Did you mean all?"),
    "key in retrieve": _set(HIPPO, "method.retrieve.ranked.dampng=0.5", fix="Did you mean damping?"),
    "step that is not there": _set(HIPPO, "method.retrieve.rankd.damping=0.5", fix="Did you mean ranked?"),
    "section of nothing": _set("method.context.chunks.from=chonks", fix="Did you mean chunks?"),
    "setting of another page": _set("dataset.name=x", fix="Known: loader, subset"),
    "commas without -m": _set("method=bm25,vanilla", fix="Add -m", place="method=bm25,vanilla lists several values"),
    "grammar": _set("limit=[1", fix="Write key=value", place="The override 'limit=[1' cannot be read"),
    "no value": _set("limit", fix="Write key=value", place="The override 'limit' cannot be read"),
    "nothing to remove": _set("~limt", fix="limt"),
    "unresolved": _set("method.top_k=${nope}", fix="Give method.top_k="),
    "dataset.path missing": _set("dataset=folder", fix="Give dataset.path=", place="conf/dataset/folder.yaml:4"),
    "no extractor": _set(HIPPO, "graph.extractor=null", fix="Write graph.extractor=llm"),
    "no graph": _set(HIPPO, "graph=none", fix="Write requires: {graph: kg}", place="conf/method/hipporag.yaml:8"),
    # graphs, communities, indexes, loops
    "unknown community page": _set(LOCAL, "community=leidn", fix="Did you mean leiden?"),
    "unknown clusterer": _set(LOCAL, "community.clusterer=lieden", fix="Did you mean leiden?"),
    "unknown reporter": _set(LOCAL, "community.reports=modl", fix="Did you mean model?"),
    "community of 0": _set(LOCAL, "community.max_size=0", fix="Write max_size: 1 or more"),
    "setting of reports that are not written": _set("method=graphrag_er", "community=leiden", "community.reports=null",
                                                    "community.report_tokens=9", fix="Did you mean reports?"),
    "no communities": _set(LOCAL, "community=none", fix="community=leiden on the command line",
                           place="conf/method/lgraphrag.yaml:10: community.entity reads community, which the graph tkg has not"),
    "no reports": _set(LOCAL, "community.reports=null", fix="community.reports=model",
                       place="community.entity reads community.report, which the graph tkg has not"),
    "no described extractor": _set(LOCAL, "graph.extractor=null", fix="Write graph.extractor=described"),
    "graph of passages": _set(HIPPO, "graph=passage", fix="Graphs that have it: ",
                              place="conf/method/hipporag.yaml:8: node.link reads node.name, which the graph passage has not"),
    "imported graph missing": _set(LOCAL, "graph=imported", "graph.path={root}/nowhere", fix="Check graph.path",
                                   place="{root}/nowhere does not exist"),
    "imported graph not named": _set(LOCAL, "graph=imported", fix="Give graph.path=", place="conf/graph/imported.yaml:3"),
    "unknown search backend": _set("index.backend=fais", fix="Did you mean faiss?"),
    "unknown search page": _set("index=fais", fix="Did you mean faiss?"),
    "unknown kind of search": _set("index=faiss", "index.kind=flt", fix="Did you mean flat?"),
    "kind of an exact search": _set("index.kind=flat", fix="backend"),
    "unknown text of nodes": _set("index.node_text=nme", fix="Did you mean name?"),
    "level below 0": _set("method=ggraphrag", "method.retrieve.communities.level=-1", fix="Write level: 0"),
    "cut of no section": _set(LOCAL, "method.cut=[reprots]", fix="Did you mean reports?"),
    "cut in one word": _set("method.cut=chunks", fix="The default is None"),
    "requirement on the command line": _set(TOG, "method.requires.graph=tkg", fix="such as graph=kg"),
    "score out of range": _set("method=ggraphrag", "method.answer.min_score=101", fix="The default is 1"),
    "unknown unit": _set("method=ggraphrag", "method.answer.unit=itm", fix="Did you mean item?"),
    "rounds of a loop": _set(TOG, f"{WALK}.repeat.max=0", fix="Write max: 1"),
    "unknown setting of a loop": _set(TOG, f"{WALK}.repeat.mx=2", fix="Did you mean max?"),
    "setting beside a loop": _set(TOG, f"{WALK}.max=2", fix="Write walk.repeat.max"),
    "unknown step of a loop": _set(TOG, f"{WALK}.repeat.steps.chosn.width=5", fix="Did you mean chosen?"),
    "unknown setting in a loop": _set(TOG, f"{WALK}.repeat.steps.chosen.widht=5", fix="Did you mean width?"),
    "bad value in a loop": _set(TOG, f"{WALK}.repeat.steps.chosen.width=0", fix="Write width: 1 or more"),
    "unknown collect": _set(TOG, f"{WALK}.repeat.collect=lst", fix="Did you mean last?"),
    "until of no truth": _set(TOG, f"{WALK}.repeat.until=paths", fix="Of that type: enough"),
    "loop without an end": _loop("      max: 2\n", "", 8, "Write repeat: {max: 3"),
    "carry from nothing": _loop("frontier: topics}", "frontier: topcs}", 10, "Did you mean topics?"),
    "carry of nothing": _loop("{frontier: topics}", "{frontier: topics, more: topics}", 10, "Name a step so"),
    "step hides an earlier one": _loop("near: {operator", "linked: {operator", 13, "Give it another name"),
    "wire inside a loop": _loop("chosen: chosen,", "chosen: chosn,", 14, "Did you mean chosen?"),
    "unread result of a loop": _loop("      until: enough\n", "", 7, "remove it"),
    "value of a loop outside": _loop("from: walk.paths", "from: paths", 18, "Did you mean walk.paths?"),
    "overlap above size": _set("chunking.size=10", "chunking.overlap=20", fix="Set `overlap`", place="overlap of 20",
                               late=True),
    "too long a name": {"args": ("output={root}/" + "n" * 300,), "place": "a name in the path is too long",
                        "fix": "Choose a shorter one", "late": True},
    # wiring, in a page of the user's own
    "unknown key of a step": _page("seeds: linked", "seeds: linked, foo: 1", 6, "Known: damping"),
    "wire to nothing": _page("nodes: ranked", "nodes: rankd", 7, "Did you mean ranked?"),
    "wire to a later step": _page("seeds: linked", "seeds: relationships", 6, "Known: linked"),
    "wire of another type": _page("relationships: relationships", "relationships: ranked", 8, "Of that type: relationships"),
    "ambiguous wires": _page(", nodes: ranked", "", 7, "Say which: nodes: linked"),
    "no wire": _page("  linked: {operator: node.link}\n", "", 5, "no earlier step makes"),
    "unread result": _page("  relationships:", "  spare: {operator: node.ppr, seeds: linked}\n  relationships:", 7, "remove it"),
    "unknown join": _page("seeds: linked", "seeds: linked, join: mean", 6, "Write join: max"),
    "step without operator": _page("operator: node.link", "op: node.link", 5, "Write linked: {operator: …}"),
    "context of something else": _page("from: chunks", "from: ranked", 8, "Wire it to a later step or a context section"),
    "context missing": _page("context: {chunks: {from: chunks, top_k: 4}}\n", "", 4, "Write context"),
    "entities not asked for": _page("question: {entities: {by: rule}}\n", "", 4, "Write question"),
    "unknown requirement": _page("graph: kg", "grph: kg", 2, "Did you mean graph?"),
    "answer in one word": _page("{generator: direct}", "direct", 10, "default"),
    "unknown field": _text(PAGE + "anwser: {}\n", 11, "Did you mean answer?"),
    "empty page": _text("", 1, "Write name: …"),
    "page is a list": _text("- name: Mine\n", 1, "Write key: value lines"),
    "page is not YAML": _text(PAGE + "notes: [1, 2\nmore: }\n", 12, "Mend the line"),
    "page with a control character": _text(PAGE + "notes: \0\n", 1, "Mend the line"),
    "key given twice": _text(PAGE + "name: Other\n", 11, "Mend the line"),
    "page is not UTF-8": _text(PAGE.replace("Mine", "M\u00efne").encode("latin-1"), "", "Save it as UTF-8"),
    "page builds on itself": _text("defaults: [/method/mine@_here_]\n" + PAGE, 1, "Break the circle"),
    "page builds on nothing": _text("defaults: [/method/nobody@_here_]\n" + PAGE, 1, "no method called 'nobody'"),
    "defaults in one word": _text("defaults: vanilla\n" + PAGE, 1, "Write [page]"),
    "model page is a list": _trial("- backend: scripted\n", "conf/llm/mine.yaml:1", "Write key: value lines", "llm"),
    "model page is not YAML": _trial("backend: [\n", "conf/llm/mine.yaml:", "Mend the line", "llm"),
    "model page without backend": _trial("", "conf/llm/mine.yaml:1", "Give llm.backend=", "llm"),
    "model page with an unknown key": _trial("backend: scripted\nreplys: x\n", "conf/llm/mine.yaml:2",
                                             "Did you mean replies?", "llm"),
    "experiment with an unknown key": _trial("sweeep: {seed: [0]}\n", "conf/experiment/mine.yaml", "Move settings"),
    "experiment sweeps no list": _trial("sweep: {seed: 3}\n", "conf/experiment/mine.yaml:1", "Write seed: [one, two]"),
    "experiment with a bad value": _trial("description: x\nsweep:\n  limit: [abc, 2]\n",
                                          "conf/experiment/mine.yaml:3, limit=abc", "The default is None"),
    "experiment with a bad override": _trial("overrides:\n  - 'limit=[1'\n", "conf/experiment/mine.yaml:1", "Write key=value"),
    # models
    "no key": _set("llm=openai", fix="Set OPENAI_API_KEY", place="OPENAI_API_KEY is not set", late=True),
    "key refused": _set("llm=openai", "llm.base_url={refusing}", fix="Set the environment variable OPENAI_API_KEY",
                        place="refused the key (HTTP 401)", late=True),
    "key refused in extraction": _set("llm=openai", "llm.base_url={refusing}", HIPPO, late=True,
                                      fix="Set the environment variable OPENAI_API_KEY", place="(HTTP 401)"),
    "embedder's key refused": _set("embedder=openai", "embedder.base_url={refusing}", fix="api_key_env",
                                   place="refused the key (401)", late=True),
    "extraction without a server": _set("llm=openai", "llm.base_url={dead}", HIPPO, "execution.attempts=1", late=True,
                                        fix="run again with execution.retry_failed=true", place="16 connection"),
    "budget without prices": _set("llm=openai", "llm.model=my-own", "llm.base_url={dead}", "execution.budget_money=1.0",
                                  fix="Add the model to conf/prices.yaml", place="budget in money", late=True),
    "recording missing": _set("llm=replay", "llm.path={root}/no.jsonl", fix="Correct llm.path", place="{root}/no.jsonl"),
    "recording not named": _set("llm=replay", fix="Give llm.path=", place="conf/llm/replay.yaml:1"),
    "recording broken": _set("llm=replay", "llm.path={root}/data/corpus.jsonl", fix="Record it again",
                             place="{root}/data/corpus.jsonl:1"),
    "script missing": _set("llm.path={root}/no.jsonl", fix="Correct llm.path", place="{root}/no.jsonl"),
    "script broken": _set("llm.path={root}/data/corpus.jsonl", fix='Write {"match"', place="{root}/data/corpus.jsonl:1"),
    "unknown weights": _set("llm=llamacpp", "llm.model={root}/no.gguf", fix="qwen2.5-coder-0.5b", place="{root}/no.gguf"),
    # disk, as far as names go; faults of the disk itself are below
    "output is a file": {"args": ("output={root}/data/corpus.jsonl",), "place": "{root}/data/corpus.jsonl",
                         "fix": "Choose another folder", "late": True},
    "output below a file": {"args": ("output={root}/data/corpus.jsonl/deep/er",), "place": "{root}/data/corpus.jsonl",
                            "fix": "Choose another folder", "late": True},
    "store is a file": {"args": (HIPPO,), "store": "{root}/data/corpus.jsonl", "place": "{root}/data/corpus.jsonl",
                        "fix": "Choose another folder", "late": True},
    # the other verbs
    "show of no run": {"args": ("{root}/data",), "verb": "show", "place": "{root}/data is not the folder", "fix": "Give OUTPUT/"},
    "show of a damaged run": {"args": ("{root}/gone",), "verb": "show", "files": {"gone/run.json": '{"status": '},
                              "place": "{root}/gone/run.json is damaged", "fix": "Run the cell again"},
    "list of no kind": {"args": ("metrik",), "verb": "list", "place": "'metrik'", "fix": "Did you mean metric?"},
    "score of nothing": {"args": ("{root}/no.jsonl",), "verb": "score", "place": "{root}/no.jsonl", "fix": "Check the path"},
    "score of an empty file": {"args": ("{root}/s",), "verb": "score", "files": {"s": ""}, "place": "{root}/s:1",
                               "fix": "Give it one JSON object a line"},
    "score without prediction": {"args": ("{root}/s",), "verb": "score", "files": {"s": '{"id": "a", "answers": []}\n'},
                                 "place": "{root}/s:1", "fix": "The line has"},
    "score of a repeated id": {"args": ("{root}/s",), "verb": "score", "place": "{root}/s:2", "fix": "Keep one line",
                               "files": {"s": '{"id": "a", "prediction": "x", "answers": ["x"]}\n' * 2}},
    "score by no metric": {"args": ("{root}/s", "--metrics=acuracy"), "verb": "score", "place": "'acuracy'",
                           "fix": "Did you mean accuracy?",
                           "files": {"s": '{"id": "a", "prediction": "x", "answers": ["x"]}\n'}},
    "score with a negative seed": {"args": ("{root}/s", "--seed=-1"), "verb": "score", "place": "-1", "fix": "from 0",
                                   "files": {"s": '{"id": "a", "prediction": "x", "answers": ["x"]}\n'}},
}


@pytest.fixture
def own_pages(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``conf/`` of the test's folder stand beside the project's, as an installed package's would."""
    (world.root / "conf").mkdir()
    found = (*sources.roots(), world.root / "conf")
    monkeypatch.setattr(sources, "roots", lambda: found)


def check_kept(world: Any, before: dict[str, bytes], replies: dict[str, str]) -> None:
    """No file of the earlier run or of the store is lost: it is where it was, or under previous/ in its folder."""
    after = world.files()
    for name, content in before.items():
        path = Path(name)
        aside = [after[other] for other in after if Path(other).parent.parent == path.parent / "previous"
                 and Path(other).name == path.name]
        assert after.get(name) == content or content in aside, f"{name} is lost"
    assert replies.items() <= world.replies().items()
    assert not [name for name in after if Path(name).name.startswith(".")], "something unfinished was left"


@pytest.mark.parametrize("kind", list(BAD))
def test_bad_input_is_one_clear_message_and_loses_nothing(kind, world, own_pages, refusing_server, dead_server):
    row = BAD[kind]
    verb = row.get("verb", "run")

    def spelled(text: str) -> str:
        places = {"{root}": str(world.root), "{refusing}": refusing_server, "{dead}": dead_server}
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    for name, content in {CORPUS: LINE, QUESTIONS: ASKED, **row.get("files", {})}.items():
        world.write(name, content)
    before, replies = world.files(), world.replies()
    args = [spelled(text) for text in row["args"]]
    store = spelled(row["store"]) if "store" in row else None

    bad = world.run(*args, verb=verb, usual=verb == "run", store=store)

    assert bad.code == 2, bad
    assert bad.out == ""
    assert bad.err.count("graphrag-bench: ") == 1
    assert "Traceback" not in bad.err
    assert spelled(row["place"]) in bad.err
    assert spelled(row["fix"]) in bad.err
    if not row.get("late"):
        assert (world.files(), world.replies()) == (before, replies)  # nothing was even begun
        return
    check_kept(world, before, replies)
    good = world.run("method=vanilla")
    assert (good.code, good.err) == (0, "")
    name = "vanilla/sample-demo/answers.jsonl"
    assert (world.out / name).read_bytes() == before[f"out/{name}"]


@pytest.mark.parametrize("kind", ["duplicate id", "no questions", "openie without triples", "unknown method", "limit 0",
                                  "damping of 1", "commas without -m", "ambiguous wires", "recording missing"])
def test_check_says_the_same_as_run(kind, world, own_pages):
    row = BAD[kind]
    for name, content in {CORPUS: LINE, QUESTIONS: ASKED, **row.get("files", {})}.items():
        world.write(name, content)
    args = [text.replace("{root}", str(world.root)) for text in row["args"]]
    checked, ran = world.run(*args, verb="check"), world.run(*args)
    assert (checked.code, checked.out, checked.err) == (2, "", ran.err)


def test_faults_are_told_all_at_once(world):
    bad = world.run("limit=abc", "seed=-1", "method.answer.max_tokens=0", "evaluation.metrics=[acuracy]", "sede=3")
    assert bad.code == 2
    assert bad.err.startswith("graphrag-bench: 5 faults; nothing was run")


def test_a_server_nobody_answers_at_fails_every_question(world, dead_server):
    done = world.run("llm=openai", f"llm.base_url={dead_server}", "execution.attempts=1", "method=bm25")
    assert done.code == 1
    assert "0/12" in done.out
    assert "0 of 12 answered (12 connection)" in done.out
    assert "every question failed" in done.out


def test_a_window_too_small_fails_every_question(world):
    done = world.run("llm.window=100", "method=bm25")
    assert done.code == 1
    assert "0 of 12 answered (12 too_long)" in done.out


def test_damaged_artifact_is_said_and_built_again(world):
    (vectors,) = (world.store / "vectors").glob("*/vectors.npy")
    flipped = bytearray(vectors.read_bytes())
    sound = bytes(flipped)
    flipped[-1] ^= 1
    vectors.write_bytes(bytes(flipped))
    done = world.run("method=vanilla", "output=" + str(world.root / "out2"), "logging.display=plain")
    assert done.code == 0
    assert "is damaged (vectors.npy does not match its checksum); it is moved aside and built again" in done.err
    assert vectors.read_bytes() == sound
    assert len(list((world.store / "damaged").glob("*/vectors.npy"))) == 1
    name = "vanilla/sample-demo/answers.jsonl"
    assert (world.root / "out2" / name).read_bytes() == (world.out / name).read_bytes()


@pytest.mark.parametrize("name", ["manifest.json", "vectors.npy"])
def test_artifact_without_a_file_is_said_and_built_again(world, name):
    (path,) = (world.store / "vectors").glob(f"*/{name}")
    path.unlink()
    done = world.run("method=vanilla", "output=" + str(world.root / "out2"), "logging.display=plain")
    assert done.code == 0
    assert "missing); it is moved aside and built again" in done.err
    assert path.is_file()


def test_damaged_reply_cache_is_moved_aside_and_begun_again(world):
    path = world.store / "replies.sqlite"
    path.write_bytes(b"no database at all, " * 500)
    for rest in ("-wal", "-shm"):
        path.with_name(path.name + rest).unlink(missing_ok=True)
    done = world.run("method=vanilla", "output=" + str(world.root / "out2"), "logging.display=plain")
    assert done.code == 0
    assert "was damaged" in done.err
    assert "It is now replies.sqlite.damaged-1" in done.err
    assert path.with_name("replies.sqlite.damaged-1").read_bytes().startswith(b"no database")
    assert len(world.replies()) == 12


def test_damaged_record_of_a_run_is_set_aside_and_the_run_made_again(world):
    record = world.out / "vanilla/sample-demo/run.json"
    record.write_bytes(record.read_bytes()[:100])
    done = world.run("method=vanilla", "logging.display=plain")
    assert done.code == 0
    assert "held a run with other settings; it lies now in" in done.err
    assert "0 model calls made, 12 answered from the cache" in done.out
    assert world.run("show", str(record.parent), verb="show", usual=False).code == 2  # two arguments
    assert world.run(str(record.parent), verb="show", usual=False).code == 0


# -- the disk itself --


@pytest.mark.parametrize("where, number, says", [
    ("folder", errno.ENOSPC, "the disk is full"), ("sync", errno.ENOSPC, "the disk is full"),
    ("rename", errno.ENOSPC, "the disk is full"), ("append", errno.ENOSPC, "the disk is full"),
    ("folder", errno.EROFS, "the file system is read-only"), ("folder", errno.EACCES, "permission was denied"),
    ("append", errno.EDQUOT, "the disk quota is used up"),
])
def test_faults_of_the_disk_are_said(world, monkeypatch, where, number, says):
    """Root may write anywhere, so the system's refusals are raised by hand at every kind of place that writes."""
    before, replies = world.files(), world.replies()
    fault = OSError(number, os.strerror(number))

    def refuse(*_: object, **__: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        if where == "folder":
            made = Path.mkdir
            patch.setattr(Path, "mkdir", lambda path, *a, **k: refuse() if path.is_relative_to(world.root)
                          else made(path, *a, **k))
        elif where == "sync":
            patch.setattr(os, "fsync", refuse)
        elif where == "rename":
            patch.setattr(Path, "replace", refuse)
        else:
            opened = Path.open
            patch.setattr(Path, "open", lambda path, mode="r", *a, **k: refuse() if path.name == "answers.jsonl"
                          else opened(path, mode, *a, **k))
        bad = world.run("method=bm25")
    assert bad.code == 2
    assert bad.err.count("graphrag-bench: ") == 1
    assert says in bad.err
    assert "(" + str(world.root) in bad.err  # where
    check_kept(world, before, replies)
    assert world.run("method=bm25").code == 0
    assert world.run("method=vanilla").code == 0


def test_no_folder_for_temporary_files_is_said(world, monkeypatch):
    import tempfile

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryDirectory", refuse)
        bad = world.run("method=bm25")
    assert bad.code == 2
    assert "set TMPDIR" in bad.err


def started(world: Any, *arguments: str, limit: int | None = None, root: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command in a process of its own, whose files may have ``limit`` bytes at most."""
    root = root or world.root
    usual = ["dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=none", "evaluation.bootstrap=20"]

    def bound() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    return subprocess.run(
        [sys.executable, "-m", "graphrag_bench", "run", *usual, f"output={root / 'out'}", *arguments],
        env={**os.environ, "GRAPHRAG_BENCH_STORE": str(root / "store")}, capture_output=True, text=True, timeout=60,
        preexec_fn=bound,
    )


@pytest.mark.parametrize("limit", [2_000, 60_000])
def test_files_that_may_not_grow_are_said(tmp_path, limit):
    bad = started(None, "method=hipporag", limit=limit, root=tmp_path)
    assert bad.returncode == 2, bad.stderr
    assert bad.stderr.count("graphrag-bench: ") == 1
    assert "Traceback" not in bad.stderr
    assert not list(tmp_path.rglob(".*"))


def test_a_disk_that_fills_up_at_any_stage_stops_with_a_message_and_goes_on_when_there_is_room(tmp_path, finished):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this account may not mount a file system")
    try:
        said = set()
        for size in (24, 140):  # KiB, growing: each stops further on
            subprocess.run(["mount", "-o", f"remount,size={size}k", str(disk)], check=True)
            bad = started(None, "method=vanilla", root=disk)
            assert bad.returncode == 2, (size, bad.returncode, bad.stderr)  # -7 would be SIGBUS, from a mapped vector
            assert bad.stderr.count("graphrag-bench: ") == 1
            said.add(bad.stderr)
        assert len(said) > 1
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert started(None, "method=vanilla", root=disk).returncode == 0
        name = "out/vanilla/sample-demo/answers.jsonl"
        assert (disk / name).read_bytes() == (finished.root / name).read_bytes()
        assert not list(disk.rglob(".*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_system_mounted_read_only_is_said(tmp_path, finished):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,ro", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this account may not mount a file system")
    try:
        for folders in ({"output": disk / "o"}, {"store": disk / "s"}):
            out = folders.get("output", tmp_path / "o")
            bad = finished.run("method=bm25", f"output={out}", store=str(folders.get("store", tmp_path / "s")))
            assert bad.code == 2
            assert "the file system is read-only" in bad.err
            assert str(disk) in bad.err
    finally:
        subprocess.run(["umount", str(disk)], check=True)
