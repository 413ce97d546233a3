"""What the extraction of described records says to the model: the task, the examples, and the schemas of the replies."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.graph.claims import STATUSES
from graphrag_bench.llm.base import Message
from graphrag_bench.prompts import prompt, prompt_hash, render

HERE = "graphrag_bench.graph"
_OURS = ("records_example", "records_example_reply")
PROMPTS = prompt_hash(
    HERE, "records", "records_keywords", *_OURS, "gleaning", "missed", "claims", "claims_example_reply"
)
OTHER = "other"
_NAME = 100  # characters of a name or keyword, so that a model that cannot end one is stopped
_DATE = 20
_FIELDS = {"entities": ("name", "type", "description"), "relations": ("source", "target", "description", "strength")}
Example = tuple[str, dict[str, Any]]  # a passage, and the reply to it


def start(types: Sequence[str], keywords: bool, examples: str | None = None) -> list[Message]:
    """Return what every chunk's chat begins with: the task, and each example as a turn of the chat.

    Args:
        types: of entities; a type of an example that is not among them is shown as "other".
        keywords: relations have keywords.
        examples: a file of examples (see `read_examples`), or None for our own.
    """
    task = render(
        HERE, "records", types=", ".join(types), keywords=prompt(HERE, "records_keywords") if keywords else ""
    )
    turns = [Message("system", task)]
    for passage, shown in read_examples(examples, keywords) if examples is not None else [_own_example()]:
        for entity in shown["entities"]:
            entity["type"] = entity["type"] if entity["type"] in types else OTHER
        for relation in shown["relations"] if not keywords else ():
            relation.pop("keywords", None)
        turns += [Message("user", f"Passage:\n{passage}"), Message("assistant", json.dumps(shown, ensure_ascii=False))]
    return turns


def _own_example() -> Example:
    return prompt(HERE, _OURS[0]), json.loads(prompt(HERE, _OURS[1]))


def claims_start(about: str) -> list[Message]:
    """Return what every chunk's chat on claims begins with: the task, and an example as a turn of the chat.

    A chat of its own: behind the records of a chunk, a small model makes its claims about the names of their example.

    Args:
        about: what is a claim.
    """
    passage, records = _own_example()
    asked = claims_turn(passage, [entity["name"] for entity in records["entities"]])
    shown = json.dumps(json.loads(prompt(HERE, "claims_example_reply")))
    return [Message("system", render(HERE, "claims", about=about)), asked, Message("assistant", shown)]


def claims_turn(passage: str, names: Sequence[str]) -> Message:
    """Return the turn that asks for the claims of one passage about some names."""
    return Message("user", f"Passage:\n{passage}\n\nNames: {json.dumps(list(names), ensure_ascii=False)}")


def read_examples(path: str, keywords: bool) -> list[Example]:
    """Return the few-shot examples of a file: JSON lines with ``text``, ``entities`` and ``relations`` as in a reply.

    Args:
        path: the file.
        keywords: relations must have a list of keywords too.

    Raises:
        UserError: There is no such file, or a line is no such example.
    """
    file = Path(path)
    if not file.is_file():
        raise UserError(
            f"There is no file {path} of examples.", "Correct graph.examples, or set it to null for our own."
        )
    found: list[Example] = []
    wanted = {**_FIELDS, "relations": (*_FIELDS["relations"], *(["keywords"] if keywords else []))}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            shown = {name: [{key: item[key] for key in keys} for item in row[name]] for name, keys in wanted.items()}
            found.append((str(row["text"]).strip(), shown))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}:{number}: no example of an extraction ({type(error).__name__}: {error}).",
                'Write {"text": …, "entities": [{name, type, description}], "relations": [{source, target, description, '
                f"strength{', keywords' if keywords else ''}}}]}} on one line.",
            ) from None
    if not found:
        raise UserError(f"{path} holds no example.", "Write one a line, or set graph.examples to null for our own.")
    return found


def records_schema(
    types: Sequence[str], keywords: bool, max_entities: int, max_relations: int, description_chars: int
) -> dict[str, Any]:
    """Return the schema of a chunk's entities and relations."""
    name, text = _text(_NAME), _text(description_chars)
    words = {"keywords": {"type": "array", "items": name, "minItems": 1, "maxItems": 3}} if keywords else {}
    entity = {"name": name, "type": {"enum": list(types)}, "description": text}
    relation = {"source": name, "target": name, "description": text, **words, "strength": {"type": "integer"}}
    lists = {"entities": _list(entity, max_entities), "relations": _list(relation, max_relations)}
    return _object(lists)


def missed_schema() -> dict[str, Any]:
    """Return the schema that forces yes or no, as the GraphRAG paper's logit bias does."""
    return _object({"missing": {"enum": ["yes", "no"]}})


def claims_schema(names: Sequence[str], max_claims: int, description_chars: int) -> dict[str, Any]:
    """Return the schema of a chunk's claims, each about one of the names; object and dates may be empty."""
    text, date = _text(description_chars), _text(_DATE, 0)
    claim = {
        "subject": {"enum": list(names)}, "object": _text(_NAME, 0), "type": _text(_NAME), "status": {"enum": list(STATUSES)},
        "start": date, "end": date, "description": text, "source": _text(description_chars, 0),
    }  # fmt: skip
    return _object({"claims": _list(claim, max_claims)})


def _text(longest: int, shortest: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def _list(fields: dict[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": _object(fields), "maxItems": most}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
