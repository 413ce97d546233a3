"""Dataset cards: where a dataset comes from and what it should hold, compared with what was loaded."""

from collections.abc import Sequence
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from graphrag_bench.data.types import Card
from graphrag_bench.errors import UserError
from graphrag_bench.registry import nearest

_COUNTS = ("documents", "questions")
_FIELDS = tuple(field.name for field in fields(Card))


def known_card(name: str) -> Card:
    """Return the card that ships for a dataset of this name, or an empty one."""
    # A name with a separator is never one of ours, and must not lead out of the folder.
    if "/" in name or "\\" in name:
        return Card(name=name)
    entry = files("graphrag_bench.data").joinpath("cards", f"{name}.yaml")
    if not entry.is_file():
        return Card(name=name)
    return _parse(yaml.safe_load(entry.read_text(encoding="utf-8")), f"the card of {name}")


def read_card(path: Path, name: str) -> Card:
    """Read a ``card.yaml`` that lies beside a dataset; ``name`` wins over a name in it.

    Raises:
        UserError: The file is not YAML, not a mapping, or has an unknown or mistyped field.
    """
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{path}:1: the card is not UTF-8.", "Save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        raise UserError(f"{path}:{line}: the card is not valid YAML.", "Write one `field: value` a line.") from None
    return replace(_parse(value, str(path), name=name), name=name)


def differences(card: Card, documents: int, questions: int, sha256: str) -> Sequence[str]:
    """Say in sentences where a loaded dataset is not what its card expects."""
    found = []
    for what, expected, actual in (("documents", card.documents, documents), ("questions", card.questions, questions)):
        if expected is not None and expected != actual:
            found.append(f"The card of {card.name} expects {expected:,} {what}, but {actual:,} were loaded.")
    if card.sha256 and card.sha256 != sha256 and not found:
        found.append(f"The card of {card.name} expects the content {card.sha256[:12]}…, but {sha256[:12]}… was loaded "
                     "(the counts agree).")
    return found


def _parse(value: Any, place: str, name: str = "") -> Card:
    if not isinstance(value, dict):
        raise UserError(f"{place}:1: a card is a mapping of fields.", f"Its fields are {', '.join(_FIELDS)}.")
    for key, entry in value.items():
        if key not in _FIELDS:
            raise UserError(f"{place}: a card has no field {key!r}.", nearest(str(key), _FIELDS))
        if key in _COUNTS and not (entry is None or (isinstance(entry, int) and not isinstance(entry, bool))):
            raise UserError(f"{place}: {key} must be a whole number, but it is {entry!r}.", "Write the count.")
        if key not in _COUNTS and not isinstance(entry, str):
            raise UserError(f"{place}: {key} must be text, but it is {entry!r}.", "Put it in quotes.")
    return Card(**{"name": name, **value})
