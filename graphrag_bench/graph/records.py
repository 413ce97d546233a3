"""The described records of an extraction, merged over all chunks into nodes and relationships."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from graphrag_bench.graph.claims import Claims
from graphrag_bench.graph.extraction import RelationRecord, RichExtraction
from graphrag_bench.graph.summaries import sentence
from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.graph.wording import word_list, words
from graphrag_bench.llm.window import estimate_tokens

Parallel = Literal["keep", "merge"]
Weight = Literal["strength", "count"]
Describe = Literal["none", "name+triples"]
Merge = Literal["model", "cut"]
Match = Literal["exact", "soft"]


class Options(NamedTuple):
    """The settings of the builders tkg and rkg; what each means is said there."""

    parallel: Parallel
    weight: Weight
    describe: Describe
    described_triples: int
    merge: Merge
    summary_threshold: int
    summary_tokens: int
    synonym_threshold: float | None
    synonym_top_k: int
    match: Match = "exact"
    match_cosine: float = 0.85
    match_spelling: float = 0.6


@dataclass
class Node:
    """An entity, over all chunks. Texts are kept once each, by what makes two of them the same, in the order met."""

    name: str
    types: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, str] = field(default_factory=dict)


@dataclass
class Relation:
    """A relationship, over all statements of it."""

    source: int
    target: int
    weight: float = 0.0
    names: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    keywords: dict[str, str] = field(default_factory=dict)


class Records:
    """The records of an extraction, merged into nodes and relationships.

    Args:
        options: how they are merged.
        read_as: a name's key -> the name it is read as; a key that is not there stands for itself.
    """

    def __init__(self, options: Options, read_as: Mapping[str, str] | None = None) -> None:
        self.options = options
        self._read_as = read_as or {}
        self.nodes: list[Node] = []
        self.relations: list[Relation] = []
        self.in_chunk: list[tuple[int, int]] = []
        self.stated: list[tuple[int, int]] = []
        self.claims = Claims()
        self._ids: dict[str, int] = {}
        self._places: dict[tuple[int | str, ...], int] = {}
        self._said: set[tuple[int | str, ...]] = set()

    def add(self, extraction: RichExtraction) -> None:
        """Take every record, chunk by chunk: the entities of a chunk before its relations."""
        for chunk, (entities, relations) in enumerate(zip(extraction.entities, extraction.relations, strict=True)):
            for entity in entities:
                if phrase_key(entity.name):
                    node = self.nodes[self._node(entity.name, chunk)]
                    node.types.update([entity.type] if entity.type else [])
                    _keep(node.descriptions, entity.description)
            for relation in relations:
                if phrase_key(relation.source) and phrase_key(relation.target):
                    self._relate(relation, chunk)
        for chunk, claims in enumerate(extraction.claims):
            for claim in claims:
                self.claims.add(claim, self._known(claim.subject), self._known(claim.object), chunk)

    def _known(self, name: str) -> int | None:
        return self._ids.get(phrase_key(self._read_as.get(phrase_key(name), name)))

    def _node(self, name: str, chunk: int) -> int:
        name = self._read_as.get(phrase_key(name), name)
        node = self._ids.setdefault(phrase_key(name), len(self.nodes))
        if node == len(self.nodes):
            self.nodes.append(Node(name))
        self.in_chunk.append((node, chunk))
        return node

    def _relate(self, record: RelationRecord, chunk: int) -> None:
        ends = self._node(record.source, chunk), self._node(record.target, chunk)
        verbal = self.options.describe == "name+triples"
        description, keywords = record.description, record.keywords
        if verbal and not description:
            description = " ".join((self.nodes[ends[0]].name, record.name or "related to", self.nodes[ends[1]].name))
        if verbal and not keywords:
            keywords = content_words(record.name)
        said = (*ends, _key(record.name), _key(description))
        place = self._places.setdefault(said if self.options.parallel == "keep" else ends, len(self.relations))
        if place == len(self.relations):
            self.relations.append(Relation(*ends))
        relation = self.relations[place]
        self.stated.append((place, chunk))
        if (*said, chunk) not in self._said:  # what a chunk says twice is said once there
            self._said.add((*said, chunk))
            relation.weight += record.strength if self.options.weight == "strength" else 1.0
        _keep(relation.names, record.name)
        _keep(relation.descriptions, description)
        for keyword in keywords:
            for part in keyword.split(","):  # the column joins them by commas
                _keep(relation.keywords, part)

    def describe(self) -> None:
        """Describe each node without a description by what its relationships say, the first ones met; alone, by its name."""
        bare = {at for at, node in enumerate(self.nodes) if not node.descriptions}
        tokens = dict.fromkeys(bare, 0)
        for relation in self.relations:
            for end in dict.fromkeys((relation.source, relation.target)):
                node = self.nodes[end]
                for key, text in relation.descriptions.items() if end in bare else ():
                    cost = estimate_tokens(sentence(text)) if key not in node.descriptions else 0
                    room = tokens[end] + cost <= self.options.summary_threshold
                    if room and len(node.descriptions) < self.options.described_triples:
                        node.descriptions.setdefault(key, sentence(text))
                        tokens[end] += cost
        for at in sorted(bare):
            if not self.nodes[at].descriptions:
                _keep(self.nodes[at].descriptions, self.nodes[at].name)


def spellings(extraction: RichExtraction) -> tuple[dict[str, str], Counter[str]]:
    """Return the first spelling of every name of an extraction, and in how many records it is met, both by its key."""
    first: dict[str, str] = {}
    met: Counter[str] = Counter()
    for entities, relations in zip(extraction.entities, extraction.relations, strict=True):
        for name in (*(e.name for e in entities), *(end for r in relations for end in (r.source, r.target))):
            if key := phrase_key(name):
                first.setdefault(key, name)
                met[key] += 1
    return first, met


def content_words(predicate: str) -> tuple[str, ...]:
    """Return the words of a predicate that carry its meaning, in small letters; all of them where none does."""
    every = [word.text.casefold() for word in words(predicate)]
    return tuple(dict.fromkeys([word for word in every if word not in word_list("function")] or every))


def _key(text: str) -> str:
    return phrase_key(text) or text


def _keep(texts: dict[str, str], text: str) -> None:
    if text := " ".join(text.split()):
        texts.setdefault(_key(text), text)
