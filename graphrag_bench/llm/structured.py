"""From a model's text to validated JSON: strict first, then tolerant of small faults, never inventive."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from graphrag_bench.errors import UserError

_CLOSING = {"{": "}", "[": "]"}
_MOST_CUTS = 200  # how far back a cut-off reply is searched for a prefix that satisfies the schema


@dataclass(frozen=True, slots=True)
class Parsed:
    """The data of a reply; ``closed`` if the text was cut off and closed after its last whole item."""

    data: Any
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply gives no data, in words that can be sent back to the model."""

    kind: Literal["invalid_json", "schema", "truncated"]
    message: str


def parse(text: str, schema: Mapping[str, Any], *, cut: bool = False) -> Parsed | Fault:
    """Read a reply as JSON that satisfies ``schema``.

    Code fences, prose around the JSON and small faults (a trailing comma, single quotes) are forgiven. A reply that
    ends before its JSON does is not guessed at; only with ``cut`` (it reached max_tokens) is it shortened to its last
    whole item, and accepted if that satisfies the schema and is not empty.

    Raises:
        UserError: ``schema`` itself is not a valid JSON schema.
    """
    wanted = json.dumps(schema)
    body = _body(text, schema)
    try:
        data, _ = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        if cut:
            return _close(body, wanted)
        data = _mend(body)
        if data is None:
            return Fault("invalid_json", "It is not JSON.")
    fault = _fault(data, wanted)
    return Parsed(data) if fault is None else Fault("schema", fault)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise UserError if ``schema`` is not a valid JSON schema."""
    _validator(json.dumps(schema))


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    wanted = json.loads(schema)
    try:
        Draft202012Validator.check_schema(wanted)
    except SchemaError as error:
        raise UserError(f"A JSON schema is not valid: {error.message}.", "Mend the schema of the prompt.") from error
    return Draft202012Validator(wanted)


def _fault(data: Any, schema: str) -> str | None:
    error = next(_validator(schema).iter_errors(data), None)
    if error is None:
        return None
    where = "/".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= 300 else f"{error.message[:300]}…"
    return f"At {where!r}: {message}." if where else f"{message}."


def _body(text: str, schema: Mapping[str, Any]) -> str:
    """Return the reply from where its object or array begins."""
    brackets = {"object": "{", "array": "["}.get(str(schema.get("type")), "{[")
    starts = [at for at in (text.find(bracket) for bracket in brackets) if at >= 0]
    return text[min(starts) :].strip() if starts else text.strip()


def _mend(body: str) -> Any:
    """Repair small faults of a reply that is at least complete; None if that is not enough."""
    import json_repair

    if not body or body[0] not in _CLOSING or _CLOSING[body[0]] not in body:
        return None
    # One that stops half-way looks like a small fault to the repairer, which would complete it with its own inventions.
    stack, in_string = _open_at_end(body)
    if stack or in_string:
        return None
    mended = json_repair.loads(body)
    return mended if isinstance(mended, dict | list) and mended else None


def _open_at_end(body: str) -> tuple[str, bool]:
    stack, in_string = "", False
    for _, stack, in_string in _scan(body):  # noqa: B007 (the last state is wanted)
        pass
    return stack, in_string


def _scan(body: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the brackets that are open, and whether a string is, after each character."""
    stack, in_string, escaped = "", False, False
    for at, character in enumerate(body):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in _CLOSING:
            stack += character
        elif character in "}]":
            stack = stack[:-1]
        yield at, stack, in_string


def _close(body: str, schema: str) -> Parsed | Fault:
    """Shorten a cut-off reply, item by item from its end, until closing its brackets satisfies the schema."""
    ends = [(at, stack) for at, stack, in_string in _scan(body) if not in_string and stack and body[at] in ',"}][']
    for at, stack in reversed(ends[-_MOST_CUTS:]):
        head = body[: at + 1].rstrip(",")
        try:
            data = json.loads(head + "".join(_CLOSING[bracket] for bracket in reversed(stack)))
        except ValueError:
            continue
        if _holds_something(data) and _fault(data, schema) is None:
            return Parsed(data, closed=True)
    return Fault("truncated", "It was cut off before its JSON was complete.")


def _holds_something(data: Any) -> bool:
    if isinstance(data, dict | list):
        return any(_holds_something(part) for part in (data.values() if isinstance(data, dict) else data))
    return True
