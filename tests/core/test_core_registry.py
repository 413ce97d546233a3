"""The registry: what a signature says, what is refused, and that asking for one kind imports one kind."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Literal

import pytest

from graphrag_bench import registry as module
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Nodes
from graphrag_bench.registry import KINDS, REGISTRY, REQUIRED, Registry, nearest


@pytest.fixture
def registry(monkeypatch):
    """A registry of its own that no package announces anything to."""
    monkeypatch.setattr(module, "entry_points", lambda group: [])
    return Registry()


def found(questions: Questions, nodes: Nodes | None = None, *, top_k: int = 20, rank: Literal["a", "b"]) -> Chunks:
    """Find chunks.

    More text.
    """
    return Chunks.empty(len(questions))


class Backend:
    """A backend."""

    def __init__(self, *, model: str = "m", delay_s: float = 0.0) -> None:
        self.model = model


def test_the_signature_is_the_contract(registry):
    assert registry.add("operator", "chunk.found", found, version=3, needs=("node.name",), prompts="x") is found
    made = registry.get("operator", "chunk.found")
    assert [(p.name, p.annotation, p.optional) for p in made.ports] == [
        ("questions", Questions, False),
        ("nodes", Nodes, True),
    ]
    assert {name: (s.annotation, s.default, s.inert) for name, s in made.settings.items()} == {
        "top_k": (int, 20, False),
        "rank": (Literal["a", "b"], REQUIRED, False),
    }
    assert (made.returns, made.summary, made.version, made.needs, made.extra) == (
        Chunks,
        "Find chunks.",
        3,
        ("node.name",),
        {"prompts": "x"},
    )
    assert made.where.endswith(":found")


def test_a_class_is_its_constructor(registry):
    registry.add("chat_model", "backend", Backend, inert=("delay_s",))
    made = registry.get("chat_model", "backend")
    assert made.returns is Backend
    assert made.ports == ()
    assert {name: s.inert for name, s in made.settings.items()} == {"model": False, "delay_s": True}


def test_a_collision_names_both_sides(registry):
    def other(questions: Questions) -> Chunks:
        return Chunks.empty(0)

    registry.add("operator", "chunk.found", found)
    with pytest.raises(UserError) as caught:
        registry.add("operator", "chunk.found", other)
    said = str(caught.value)
    assert "'chunk.found'" in said
    assert f"{__name__}:found" in said
    assert f"{__name__}:test_a_collision_names_both_sides.<locals>.other" in said
    assert registry.get("operator", "chunk.found").call is found
    registry.add("operator", "chunk.found", found)  # the same again, as a reloaded module does
    registry.add("converter", "chunk.found", other)  # another kind, another name space


def untyped(questions) -> Chunks: ...
def unreturned(questions: Questions): ...
def star(*questions: Questions) -> Chunks: ...
def stars(questions: Questions, **settings: int) -> Chunks: ...
def setting(questions: Questions, *, top_k=3) -> Chunks: ...
def unresolved(questions: "Nowhere") -> Chunks: ...  # noqa: F821


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (untyped, "parameter 'questions' of operator 'x' has no type"),
        (unreturned, "does not say what it returns"),
        (star, "takes *questions"),
        (stars, "takes *settings"),
        (setting, "parameter 'top_k' of operator 'x' has no type"),
        (unresolved, "cannot be resolved"),
    ],
)
def test_a_signature_that_says_too_little_is_refused_with_its_place(registry, call, says):
    with pytest.raises(UserError) as caught:
        registry.add("operator", "x", call)
    assert says in str(caught.value)
    assert f"{__name__}:{call.__name__}" in str(caught.value)
    assert registry.all("operator") == []


def test_inert_settings_must_exist(registry):
    with pytest.raises(UserError, match="calls delay inert, which it does not take"):
        registry.add("chat_model", "backend", Backend, inert=("delay",))


def test_unknown_names_and_kinds_suggest_the_nearest(registry):
    registry.add("operator", "chunk.found", found)
    with pytest.raises(UserError, match=r"No operator is called 'chunk.fond'\. Did you mean chunk\.found\?"):
        registry.get("operator", "chunk.fond")
    with pytest.raises(UserError, match=r"no kind of component called 'operater'\. Did you mean operator\?"):
        registry.get("operater", "x")
    with pytest.raises(UserError, match="no kind of component called 'thing'"):
        registry.add("thing", "x", found)
    with pytest.raises(UserError, match=r"No embedder is called 'x'\. None is known\."):
        registry.get("embedder", "x")
    assert nearest("zzzz", ["b", "a"]) == "Known: a, b."


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("no_such_package_here", "No module named 'no_such_package_here'"),
        ("stranger_broken", "No module named 'no_such_dependency'"),
    ],
)
def test_a_broken_entry_point_is_one_sentence_each_time_it_is_asked(monkeypatch, tmp_path, value, says):
    (tmp_path / "stranger_broken.py").write_text("import no_such_dependency\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "entry_points", lambda group: [EntryPoint("stranger", value, group)])
    broken = Registry()
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            broken.all("operator")
        assert str(caught.value).startswith(
            f"The entry point stranger = {value} (group graphrag_bench.operator) cannot be imported: {says}"
        )
        assert "Re-install" in caught.value.fix


def test_a_package_is_imported_with_all_it_holds_once(monkeypatch, tmp_path):
    package = tmp_path / "stranger_whole"
    (package / "deep").mkdir(parents=True)
    for path, text in {"__init__.py": "", "one.py": "", "deep/__init__.py": "", "deep/two.py": ""}.items():
        (package / path).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    asked = []
    monkeypatch.setattr(
        module, "entry_points", lambda group: asked.append(group) or [EntryPoint("s", "stranger_whole", group)]
    )
    fresh = Registry()
    fresh.load("operator")
    fresh.load("operator")
    assert asked == ["graphrag_bench.operator"]
    assert {"stranger_whole.one", "stranger_whole.deep.two"} <= set(sys.modules)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_registered_component_says_what_it_is(kind):
    for component in REGISTRY.all(kind):
        assert component.summary.endswith("."), component.name
        assert component.kind == kind


LISTS = """
import json, os, sys
from graphrag_bench.registry import KINDS, REGISTRY
made = {}
for kind in KINDS:
    out, into = os.pipe()
    if os.fork() == 0:  # each kind in a process that has seen no other
        os.close(out)
        names = [component.where.split(":")[0] for component in REGISTRY.all(kind)]
        os.write(into, json.dumps([names, sorted(m for m in sys.modules if "." in m or m in sys.argv)]).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        made[kind] = json.loads(pipe.read())
    os.wait()
print(json.dumps(made))
"""
HEAVY = (
    "torch",
    "onnxruntime",
    "xllamacpp",
    "openai",
    "wordllama",
    "sentence_transformers",
    "vllm",
    "datasets",
    "ray",
    "bm25s",
    "tokenizers",
    "matplotlib",
    "hydra",
    "rich",
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process for each kind")
def test_listing_one_kind_imports_no_component_of_another_and_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LISTS, *HEAVY], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    assert set(made) == set(KINDS)
    homes = {kind: set(names) for kind, (names, _) in made.items()}
    for kind, (names, imported) in made.items():
        assert set(names) <= set(imported), kind
        strangers = {name for other, home in homes.items() if other != kind for name in home - homes[kind]} & set(
            imported
        )
        assert not strangers, (kind, strangers)
        assert not set(HEAVY) & set(imported), (kind, set(HEAVY) & set(imported))
