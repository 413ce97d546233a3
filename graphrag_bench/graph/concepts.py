"""Which concept a name is an instance of: by the head of its own words, or by a model that reads the name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.llm.base import ChatModel, Message, Request
from graphrag_bench.llm.estimate import NAME_TOKENS, Calls, Scale, prompt_of
from graphrag_bench.prompts import prompt, prompt_hash, render

_HERE = "graphrag_bench.graph"
PROMPTS = prompt_hash(_HERE, "concepts", "concepts_system")
_KIND_TOKENS = 14  # of one name and its kind in a reply
# after these an English phrase says more of its head, and names it no more
_BEHIND = frozenset(
    ("of", "in", "on", "at", "for", "from", "to", "by", "with", "about", "between", "that", "which", "who")
)


@dataclass
class Concepts:
    """What was found.

    Attributes:
        of: node -> the name of what it is a kind or instance of.
        asked: model calls made.
        failed: by the call's subject, why it gave nothing.
    """

    of: dict[int, str] = field(default_factory=dict)
    asked: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def concept_calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call for so many names, or none."""
    if settings["concepts"] != "model":
        return Calls()
    each = settings["names_a_call"]
    asked = prompt_of(prompt(_HERE, "concepts_system"), prompt(_HERE, "concepts")) + each * NAME_TOKENS
    return Calls.each(-(-scale.nodes // each), asked, min(each * _KIND_TOKENS, settings["concept_tokens"]), "about")


def by_heads(names: Sequence[str]) -> Concepts:
    """Read concepts off the names: "Rice University" is a "university" where a node is called so, in lower case.

    The concept is the longest common noun among the nodes that ends the name, or that ends what stands before its first
    preposition ("University of Oxford"). A name spelled with a capital names one thing and is no concept.

    Args:
        names: the names; a name's node is its position.
    """
    keys = [phrase_key(name) for name in names]
    common = {key: name for key, name in zip(keys, names, strict=True) if name[:1].islower()}
    found = Concepts()
    for node, key in enumerate(keys):
        words = key.split()
        end = next((at for at, word in enumerate(words) if at and word in _BEHIND), len(words))
        ends = (" ".join(words[start:end]) for start in range(end))
        concept = next((common[phrase] for phrase in ends if phrase != key and phrase in common), None)
        if concept is not None:
            found.of[node] = concept
    return found


async def by_model(names: Sequence[str], model: ChatModel, each: int, max_tokens: int) -> Concepts:
    """Ask a model what each name is, ``each`` names a call; what it says nothing of has no concept.

    Args:
        names: the names; a name's node is its position.
        model: who is asked.
        each: names a call.
        max_tokens: room for a reply.
    """
    requests = []
    for start in range(0, len(names), each):
        shown = list(dict.fromkeys(names[start : start + each]))
        task = "\n".join([render(_HERE, "concepts"), "", *(f"- {name}" for name in shown)])
        turns = (Message("system", prompt(_HERE, "concepts_system")), Message("user", task))
        subject = f"names {start} to {min(start + each, len(names)) - 1}"
        requests.append(Request(turns, max_tokens, "graph", "concepts", subject, _schema(shown)))
    found = Concepts(asked=len(requests))
    for start, request, reply in zip(range(0, len(names), each), requests, await model.ask_all(requests), strict=True):
        if reply.failure is not None:
            found.failed[request.subject] = f"{reply.failure.kind}: {reply.failure.message}"
            continue
        kinds = {item["name"]: " ".join(item["kind"].split()) for item in reversed(reply.data["kinds"])}
        for node, name in enumerate(names[start : start + each], start):
            kind = kinds.get(name, "")
            if phrase_key(kind) and phrase_key(kind) != phrase_key(name):
                found.of[node] = kind
    return found


def _schema(names: Sequence[str]) -> dict[str, Any]:
    item = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "kind"],
        "properties": {
            "name": {"type": "string", "enum": list(names)},
            "kind": {"type": "string", "minLength": 1, "maxLength": 40},
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["kinds"],
        "properties": {"kinds": {"type": "array", "maxItems": len(names), "items": item}},
    }
