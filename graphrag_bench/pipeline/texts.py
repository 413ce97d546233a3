"""Values that are said, not ranked: the batch of questions, texts that belong to a question, and yes or no."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

from graphrag_bench.pipeline.values import NONE_FAILED, Reasons, place

By = Literal["question", "entities", "low", "high"]


@dataclass(frozen=True)
class Questions:
    """A batch of questions, never with their answers. ``failed`` rows are skipped by later steps.

    ``entities`` are lists; ``low`` and ``high``, the keywords, are one joined text a question, as LightRAG searches them.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    entities: tuple[tuple[str, ...], ...] | None = None
    low: tuple[str, ...] | None = None
    high: tuple[str, ...] | None = None
    failed: Reasons = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """How many questions the batch has."""
        return len(self.ids)

    def read(self, by: By) -> list[tuple[str, ...]]:
        """Return what an operator reads of each question; a failed question reads as nothing."""
        rows: Sequence[tuple[str, ...]]
        if by == "question":
            rows = [(text,) for text in self.texts]
        elif by == "entities":
            if self.entities is None:
                raise ValueError("the method has not asked for the questions' entities")
            rows = self.entities
        else:
            words = self.low if by == "low" else self.high
            if words is None:
                raise ValueError("the method has not asked for the questions' keywords")
            rows = [(text,) if text else () for text in words]
        return [() if number in self.failed else row for number, row in enumerate(rows)]

    def row(self, number: int) -> tuple[Any, ...]:
        """Return all that is known of one question: id, text, entities, low and high keywords."""
        columns = (self.ids, self.texts, self.entities, self.low, self.high)
        return tuple(None if column is None else column[number] for column in columns)

    def take(self, rows: Sequence[int]) -> Self:
        """Return some of the questions, in the given order."""
        failed = {at: self.failed[row] for at, row in enumerate(rows) if row in self.failed}
        taken: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else tuple(column[row] for row in rows)
            for name in ("ids", "texts", "entities", "low", "high")
        }
        return replace(self, **taken, failed=failed)

    @classmethod
    def placed(cls, size: int, parts: Sequence[tuple[Sequence[int], Self]]) -> Self:
        """Build a batch of ``size`` questions from parts, each with the rows it speaks of; a later part wins."""
        rows, failed = place(size, parts, ("", "", None, None, None))
        spoken_of = sorted({number for numbers, _ in parts for number in numbers} - failed.keys())
        asked: dict[str, Any] = {}
        for at, (name, nothing) in enumerate((("entities", ()), ("low", ""), ("high", "")), start=2):
            # a column that a question lacks was not asked for; of one that has failed nothing is read
            lacking = any(rows[number][at] is None for number in spoken_of)
            given = not lacking and any(getattr(part, name) is not None for _, part in parts)
            asked[name] = tuple(nothing if row[at] is None else row[at] for row in rows) if given else None
        return cls(tuple(row[0] for row in rows), tuple(row[1] for row in rows), **asked, failed=failed)

    @classmethod
    def join(cls, values: Sequence["Questions"], rule: str = "max") -> "Questions":
        """Return the last: two wordings of a question cannot be merged."""
        return values[-1]


class Text(NamedTuple):
    """One text: a note, the evidence wanted, a step's answer. ``anchor`` is the node it speaks of, or -1."""

    text: str
    anchor: int = -1


class _Rows:
    """One row of anything a question, with failures."""

    _nothing: ClassVar[Any] = ()

    def __init__(self, rows: Sequence[Any], failed: Reasons = NONE_FAILED) -> None:
        self.rows = tuple(rows)
        self.failed = failed

    @property
    def size(self) -> int:
        """How many questions the batch has."""
        return len(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def row(self, number: int) -> Any:
        """Return one question's row."""
        return self.rows[number]

    def take(self, rows: Sequence[int]) -> Self:
        """Return the rows of some questions only, in the given order."""
        failed = {at: self.failed[row] for at, row in enumerate(rows) if row in self.failed}
        return type(self)([self.rows[row] for row in rows], failed)

    @classmethod
    def placed(cls, size: int, parts: Sequence[tuple[Sequence[int], Self]]) -> Self:
        """Build the value of ``size`` questions from parts, each with the rows it speaks of; a later part wins."""
        return cls(*place(size, parts, cls._nothing))

    @classmethod
    def empty(cls, size: int, failed: Reasons = NONE_FAILED) -> Self:
        """Build a value that says nothing of ``size`` questions."""
        return cls([cls._nothing] * size, failed)


class Texts(_Rows):
    """Texts that belong to each question, in order: a tuple of `Text` a question."""

    rows: tuple[tuple[Text, ...], ...]

    @classmethod
    def join(cls, values: Sequence["Texts"], rule: str = "max") -> "Texts":
        """Put the texts one after the other, each once."""
        failed = _all_failed(values)
        rows = [tuple(dict.fromkeys(text for value in values for text in value.rows[n])) for n in range(values[0].size)]
        return cls(rows, failed)


class Truths(_Rows):
    """Yes or no for each question; what ends a loop."""

    rows: tuple[bool, ...]
    _nothing: ClassVar[Any] = False

    @classmethod
    def join(cls, values: Sequence["Truths"], rule: str = "max") -> "Truths":
        """Return yes where any says yes."""
        return cls([any(value.rows[n] for value in values) for n in range(values[0].size)], _all_failed(values))


def _all_failed(values: Sequence[Any]) -> Mapping[int, str]:
    return {number: reason for value in values for number, reason in value.failed.items()}
