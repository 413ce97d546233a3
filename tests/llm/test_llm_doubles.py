"""The scripted and the replaying model."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.replay import Replay, export_cache
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import Completion, Message
from graphrag_bench.llm.cache import ReplyCache
from graphrag_bench.llm.service import Chat
from graphrag_bench.registry import REGISTRY

PROMPT = "Extract the facts.\n\nPassage: Marie Curie was born in Warsaw in 1867, and she discovered radium in Paris."


def reply(backend: Scripted, text: str = PROMPT, schema: Mapping[str, Any] | None = None, sample: int = 0) -> str:
    asked = backend.complete([Message("user", text)], max_tokens=500, schema=schema, sample=sample)
    return asyncio.run(asked).text


def array(items: Any, **bounds: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **bounds}


SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "string", "minLength": 30}, {"type": "string", "maxLength": 3},
    {"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": 10}, {"type": "integer", "exclusiveMinimum": 7},
    {"type": "integer", "maximum": -3}, {"type": "integer", "minimum": 5, "multipleOf": 5, "maximum": 20},
    {"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "number", "exclusiveMaximum": 0},
    {"type": "boolean"}, {"type": "null"}, {"const": {"a": 1}}, {"enum": ["left", "right", None]},
    {"type": ["string", "null"]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"allOf": [{"type": "integer"}, {"minimum": 3}]},
    array({"type": "string"}, minItems=3, maxItems=3), array({"type": "integer"}, minItems=5),
    array({"type": "string"}, maxItems=1), array({"type": "string"}, maxItems=0),
    array({"type": "string"}, uniqueItems=True),
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2},
    {"type": "object", "properties": {"triples": array(array({"type": "string"}, minItems=3, maxItems=3), minItems=1),
                                      "score": {"type": "integer", "minimum": 0, "maximum": 100}},
     "required": ["triples", "score"], "additionalProperties": False},
    {"type": "object", "required": ["free"]},
    {"$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
     "type": "object", "properties": {"nodes": array({"$ref": "#/$defs/node"})}, "required": ["nodes"]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
@given(st.text(max_size=80), st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_auto_obeys_the_schema(schema: dict[str, Any], text: str, seed: int) -> None:
    jsonschema.Draft202012Validator(schema).validate(json.loads(reply(Scripted(seed=seed), text, schema)))


def test_auto_speaks_with_the_passages_own_words() -> None:
    triples = json.loads(reply(Scripted(), schema=array(array({"type": "string"}, minItems=3, maxItems=3), minItems=1)))
    assert triples[0][0] == "Marie Curie" and triples[0][2] == "Warsaw"
    assert triples[0][1] in PROMPT
    assert reply(Scripted()) == "Marie Curie"


def test_auto_is_the_same_every_time_and_another_for_another_sample() -> None:
    schema = array({"type": "integer", "minimum": 0, "maximum": 10**6}, minItems=3, maxItems=3)
    assert reply(Scripted(), schema=schema) == reply(Scripted(), schema=schema)
    assert reply(Scripted(), schema=schema) != reply(Scripted(), schema=schema, sample=1)
    assert reply(Scripted(), schema=schema) != reply(Scripted(seed=1), schema=schema)


def test_a_script_is_tried_in_order(tmp_path: Path, tools: Any) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"match": "born", "reply": {"names": ["Ann"]}}\n\n'
                    '{"match": "^Who .*(here|there)", "reply": "Bob"}\n'
                    '{"match": "a [bracket", "reply": "yes"}\n{"match": "break", "fail": "bad_request"}\n')
    backend = Scripted(path=str(path), replies="nothing")
    assert reply(backend, "Where was she born, and who is there?") == '{"names": ["Ann"]}'
    assert reply(backend, "Who is there?") == "Bob"
    assert reply(backend, "a [bracket") == "yes"
    assert reply(backend, "else") == "nothing"
    failed = asyncio.run(Chat(backend).ask(tools.ask("break it")))
    assert failed.failure is not None and failed.failure.kind == "bad_request"
    assert backend.identity != Scripted(replies="nothing").identity


@pytest.mark.parametrize("line", ["{", "[]", '{"reply": "x"}', '{"match": "x"}', '{"match": "x", "fail": "florp"}'])
def test_a_faulty_script_says_which_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"match": "a", "reply": "b"}\n' + line)
    with pytest.raises(UserError, match=":2"):
        Scripted(path=str(path))


def test_a_function_may_be_the_model() -> None:
    def answer(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str | Completion:
        return Completion("cut", 1, 1, "length") if schema else messages[-1].text.upper()

    backend = Scripted.of(answer)
    assert reply(backend, "hi") == "HI" and reply(backend, "hi", {"type": "string"}) == "cut"
    assert backend.calls == 2


def test_a_recorded_run_is_replayed_without_the_model(tmp_path: Path, tools: Any) -> None:
    requests = [tools.ask(PROMPT), tools.ask(PROMPT, schema=tools.NAMES), tools.ask(PROMPT, max_tokens=1)]
    broken = tools.ask("broken", schema={"type": "integer", "minimum": 5, "maximum": 1})
    with ReplyCache(tmp_path / "r.db") as cache:
        first = asyncio.run(Chat(Scripted(), cache=cache).ask_all([*requests, broken]))
        assert export_cache(cache, tmp_path / "out" / "recorded.jsonl") == 4
    chat = Chat(Replay(path=str(tmp_path / "out" / "recorded.jsonl")))
    second = asyncio.run(chat.ask_all([*requests, broken]))
    for recorded, replayed in zip(first[:3], second[:3], strict=True):
        assert (recorded.text, recorded.data, recorded.truncated) == (replayed.text, replayed.data, replayed.truncated)
        assert recorded.prompt_tokens == replayed.prompt_tokens
        assert recorded.completion_tokens == replayed.completion_tokens
    assert first[2].truncated and second[3].failure == first[3].failure
    assert second[3].failure is not None and second[3].failure.kind == "schema"
    (missed,) = asyncio.run(chat.ask_all([tools.ask("never asked")]))
    assert missed.failure is not None and missed.failure.kind == "replay_miss" and missed.text == ""


def test_a_recording_of_two_models_must_be_chosen_from(tmp_path: Path, tools: Any) -> None:
    with ReplyCache(tmp_path / "r.db") as cache:
        for seed in (0, 1):
            asyncio.run(Chat(Scripted(seed=seed), cache=cache).ask(tools.ask(PROMPT)))
        with pytest.raises(UserError, match="several models"):
            export_cache(cache, tmp_path / "out.jsonl")
        assert export_cache(cache, tmp_path / "out.jsonl", identity={"seed": 1}) == 1


@pytest.mark.parametrize("line", [
    "{", "[]", '{"prompt": "x"}',
    '{"prompt": "x", "text": "", "prompt_tokens": 1, "completion_tokens": 1, "failure": "y"}',
])
def test_a_faulty_recording_says_which_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(line)
    with pytest.raises(UserError, match=":1"):
        Replay(path=str(tmp_path / "r.jsonl"))


@pytest.mark.parametrize("make", [Scripted, Replay])
def test_a_missing_file_is_one_sentence(make: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        make(path=str(tmp_path / "none"))


def test_every_backend_is_registered_and_classes_its_settings() -> None:
    found = {component.name: component for component in REGISTRY.all("chat_model")}
    assert set(found) >= {"openai", "llamacpp", "vllm", "scripted", "replay"}
    for component in found.values():
        assert not component.ports
        assert {"window", "temperature", "seed"} <= component.settings.keys()
        assert component.settings["window"].inert is component.settings["seed"].inert is False
