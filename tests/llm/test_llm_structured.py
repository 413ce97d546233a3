"""Reading JSON out of replies."""

from typing import Any

import pytest

from graphrag_bench.llm.structured import Fault, Parsed, parse

TRIPLES = {
    "type": "object",
    "properties": {
        "entities": {"type": "array", "items": {"type": "string"}},
        "triples": {"type": "array", "items": {
            "type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}},
    },
    "required": ["triples"],
}
WHOLE = {"triples": [["a", "b", "c"]]}


@pytest.mark.parametrize("text", [
    '{"triples": [["a", "b", "c"]]}',
    '  \n{"triples": [["a", "b", "c"]]}\n',
    '```json\n{"triples": [["a", "b", "c"]]}\n```',
    'Here it is [as asked]:\n{"triples": [["a", "b", "c"]]}\nI hope it helps.',
    '{"triples": [["a", "b", "c"],]}',
    "{'triples': [['a', 'b', 'c']]}",
    '{triples: [["a", "b", "c"]]}',
])
def test_small_faults_are_forgiven(text: str) -> None:
    assert parse(text, TRIPLES) == Parsed(WHOLE)


@pytest.mark.parametrize(("text", "kind"), [
    ("", "invalid_json"),
    ("No triples are stated.", "invalid_json"),
    ('{"triples": [["a", "b", "c"]', "invalid_json"),
    ('{"triples": [["a", "b", "c', "invalid_json"),
    ('["a", "b", "c"]', "schema"),
    ("{}", "schema"),
    ('{"triples": [["a", "b"]]}', "schema"),
    ("42", "schema"),
    ("null", "schema"),
])
def test_nothing_is_made_up(text: str, kind: str) -> None:
    found = parse(text, TRIPLES)
    assert isinstance(found, Fault) and found.kind == kind


@pytest.mark.parametrize(("text", "data"), [
    ('{"triples": [["a", "b", "c"], ["d", "e"', WHOLE),
    ('{"triples": [["a", "b", "c"], ["d", "e", "f', WHOLE),
    ('{"triples": [["a", "b", "c"], [', WHOLE),
    ('{"triples": [["a", "b", "c"],', WHOLE),
    ('{"triples": [["a", "b", "c"]', WHOLE),
    ('{"triples": [["a", "b", "c]\\"}"', {"triples": [["a", "b", 'c]"}']]}),
    ('{"entities": ["x", "y"], "triples": [["a"', {"entities": ["x", "y"], "triples": []}),
    ('{"triples": [["a", "b', {}),
    ('{"triples": [', {}),
    ("", {}),
    ("Let me think about", {}),
])
def test_a_cut_reply_keeps_its_whole_items_or_is_truncated(text: str, data: dict[str, Any]) -> None:
    found = parse(text, TRIPLES, cut=True)
    if data:
        assert found == Parsed(data, closed=True)
    else:
        assert isinstance(found, Fault) and found.kind == "truncated"


def test_a_number_that_may_go_on_is_not_kept() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert parse("[1, 23, 45", schema, cut=True) == Parsed([1, 23], closed=True)


def test_a_whole_reply_at_the_bound_is_whole() -> None:
    assert parse('{"triples": [["a", "b", "c"]]}', TRIPLES, cut=True) == Parsed(WHOLE)


def test_a_bare_value_where_the_schema_wants_one() -> None:
    assert parse(" true ", {"type": "boolean"}) == Parsed(True)
    assert parse('"yes"', {"enum": ["yes", "no"]}) == Parsed("yes")


def test_the_fault_says_where() -> None:
    found = parse('{"triples": [["a", "b", 3]]}', TRIPLES)
    assert isinstance(found, Fault) and "triples/0/2" in found.message
