"""Small instances of a JSON schema, filled by rule with words of a prompt."""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_bench.errors import UserError

_PHRASE = re.compile(r"\b[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*)*|\b\d[\d,.]*\b")
_LOWER = re.compile(r"\b[^\W\d_A-Z]{3,}\b")
_RELATIONS = {"predicate", "relation", "relationship", "verb"}
_DEEPEST = 12


def passage(text: str) -> str:
    """Return the part of a prompt most likely to be its passage: the longest paragraph, the later of equals."""
    return max(reversed(re.split(r"\n\s*\n", text.strip())), key=len)


def short_text(text: str, salt: str) -> str:
    """Return one of the names (or else words) of a prompt's passage."""
    return next(_phrases(text, salt))


def instance(schema: Mapping[str, Any], text: str, salt: str) -> Any:
    """Return a small instance of ``schema``, the same for the same prompt and salt.

    Arrays have one to three items within their bounds, numbers lie within theirs, strings are names, figures or words
    of the prompt's passage. Understood: type, properties, items, prefixItems, enum, const, anyOf, oneOf, allOf, local
    $ref, and the usual bounds; not understood: pattern, format.
    """
    return _Filler(schema, text, salt).fill(schema, "", 0)


def _phrases(text: str, salt: str) -> Iterator[str]:
    """Yield names, figures and then words of the passage for ever, from a place that depends on the salt."""
    part = passage(text) if text.strip() else ""
    # A word before a colon is a label ("Passage:", "Question:"), not a name.
    named = (match.group().strip(".,") for match in _PHRASE.finditer(part) if not part.startswith(":", match.end()))
    found = list(dict.fromkeys(named))
    found = [phrase for phrase in found if phrase] or part.split() or ["Nothing"]
    start = _draw(len(found), text, salt) if salt != "0.0" else 0
    number = 0
    while True:
        round_, at = divmod(number, len(found))
        phrase = found[(start + at) % len(found)]
        yield phrase if round_ == 0 else f"{phrase} {round_ + 1}"
        number += 1


def _draw(sides: int, *what: str) -> int:
    return int.from_bytes(hashlib.sha256("\x1f".join(what).encode("utf-8", "replace")).digest()[:8], "big") % sides


class _Filler:
    def __init__(self, root: Mapping[str, Any], text: str, salt: str) -> None:
        self._root = root
        self._text = text
        self._salt = salt
        self._phrases = _phrases(text, salt)
        self._lower = [match.group() for match in _LOWER.finditer(passage(text) if text.strip() else "")] or ["is"]
        self._drawn = 0

    def _draw(self, sides: int) -> int:
        self._drawn += 1
        return _draw(sides, self._text, self._salt, str(self._drawn))

    def fill(self, schema: Any, name: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise UserError("A JSON schema is nested too deeply for a scripted reply.", "Give the reply in a script.")
        if not isinstance(schema, Mapping):
            return next(self._phrases)
        if "$ref" in schema:
            return self.fill(self._look_up(str(schema["$ref"])), name, depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][self._draw(len(schema["enum"]))]
        for either in ("anyOf", "oneOf"):
            if schema.get(either):
                return self.fill(schema[either][0], name, depth + 1)
        if schema.get("allOf"):
            merged = {key: value for part in schema["allOf"] for key, value in part.items()}
            return self.fill({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, name, depth + 1)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        return getattr(self, f"_{kind}")(schema, name, depth)

    def _look_up(self, reference: str) -> Any:
        found: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                found = found[part.replace("~1", "/").replace("~0", "~")]
        return found

    def _object(self, schema: Mapping[str, Any], name: str, depth: int) -> dict[str, Any]:
        known = schema.get("properties", {})
        filled = {key: self.fill(part, key, depth + 1) for key, part in known.items()}
        for key in schema.get("required", ()):
            if key not in filled:
                filled[key] = self.fill(schema.get("additionalProperties", {}), key, depth + 1)
        extra = schema.get("additionalProperties")
        while len(filled) < schema.get("minProperties", 0):
            filled[next(self._phrases)] = self.fill(extra, name, depth + 1)
        return filled

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        fixed = list(schema.get("prefixItems", ()))
        low = schema.get("minItems", 0)
        high = schema.get("maxItems", max(3, low))
        length = max(low, min(high, len(fixed) or 1 + self._draw(3)))
        items = schema.get("items", {})
        if items is False:
            length = min(length, len(fixed))
        filled: list[Any] = []
        for at in range(length):
            # Three strings are a triple: its middle is a relation, not a name.
            middle = "predicate" if at == 1 and low == high == 3 else name
            filled.append(self.fill(fixed[at] if at < len(fixed) else items, middle, depth + 1))
        if schema.get("uniqueItems"):
            distinct: list[Any] = []
            for item in filled:
                if item not in distinct:
                    distinct.append(item)
            return distinct
        return filled

    def _string(self, schema: Mapping[str, Any], name: str, depth: int) -> str:
        text = self._lower[self._draw(len(self._lower))] if name in _RELATIONS else next(self._phrases)
        while len(text) < schema.get("minLength", 0):
            text = f"{text} {next(self._phrases)}"
        return text[: schema["maxLength"]] if "maxLength" in schema else text

    def _integer(self, schema: Mapping[str, Any], name: str, depth: int) -> int:
        low, high = self._bounds(schema, 1.0)
        step = int(schema.get("multipleOf", 1))
        first = math.ceil(low / step) * step
        return int(first + step * self._draw(max(1, int((high - first) // step) + 1)))

    def _number(self, schema: Mapping[str, Any], name: str, depth: int) -> float:
        low, high = self._bounds(schema, 1e-6)
        return round(low + (high - low) * self._draw(101) / 100, 6)

    def _bounds(self, schema: Mapping[str, Any], gap: float) -> tuple[float, float]:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf - gap) + gap)
        high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf) - gap)
        if low == -math.inf:
            low = 0.0 if high >= 0 else high - 10
        return float(low), float(high if high != math.inf else low + 10)

    def _boolean(self, schema: Mapping[str, Any], name: str, depth: int) -> bool:
        return bool(self._draw(2))

    def _null(self, schema: Mapping[str, Any], name: str, depth: int) -> None:
        return None
