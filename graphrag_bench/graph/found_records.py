"""The entities and relations found in one chunk, over all replies that speak of it."""

import re
from collections.abc import Mapping
from typing import Any

from graphrag_bench.graph.extraction import EntityRecord, RelationRecord

_STRONGEST = 10
_SENTENCES = re.compile(r".*[.!?。！？।]", re.DOTALL)


class FoundRecords:
    """The records of one chunk, each once, in the order they came.

    Args:
        most: characters of a description; one that has as many was cut off.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.named: dict[str, EntityRecord] = {}
        self.relations: dict[tuple[str, str, str], RelationRecord] = {}

    def add(self, data: Mapping[str, Any]) -> bool:
        """Take the records of a reply; say whether any was new."""
        before = len(self.named) + len(self.relations)
        for record in data["entities"]:
            name = _tidy(record["name"])
            if name:
                made = EntityRecord(name, record["type"], self._whole(record["description"]))
                self.named.setdefault(name.casefold(), made)
        for record in data["relations"]:
            source, target, said = _tidy(record["source"]), _tidy(record["target"]), self._whole(record["description"])
            if source and target:
                words = tuple(dict.fromkeys(filter(None, map(_tidy, record.get("keywords", ())))))
                strength = float(min(max(record["strength"], 1), _STRONGEST))
                key = (source.casefold(), target.casefold(), said.casefold())
                self.relations.setdefault(key, RelationRecord(source, target, "", said, words, strength))
        return len(self.named) + len(self.relations) > before

    def _whole(self, description: str) -> str:
        """Return a description tidied; one that reached the bound ends with its last whole sentence, or else word."""
        if len(description) < self._most:
            return _tidy(description)
        sentences = _SENTENCES.match(description)
        return _tidy(sentences.group() if sentences else description.rpartition(" ")[0] or description)

    def entities(self) -> tuple[EntityRecord, ...]:
        """Return the entities, behind them the ends of relations that are none of them."""
        every = dict(self.named)
        for relation in self.relations.values():
            for name in (relation.source, relation.target):
                every.setdefault(name.casefold(), EntityRecord(name))
        return tuple(every.values())


def _tidy(text: object) -> str:
    return " ".join(str(text).split())
