"""The sample that ships with the package: small, invented, complete, and needing no network."""

from importlib.resources import as_file, files
from typing import Literal

from graphrag_bench.data.build import make_dataset
from graphrag_bench.data.card import known_card
from graphrag_bench.data.neutral import Parts, read_folder
from graphrag_bench.data.types import Dataset
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("dataset", "sample")
def sample(*, subset: Literal["all", "demo"] = "all") -> Dataset:
    """Load the bundled sample, whole or as the demo's part of it.

    Args:
        subset: ``all``, or ``demo``: the first documents and questions, as many as the card ``sample-demo`` says.

    Raises:
        UserError: There is no such subset, or the installed sample is damaged (a demo question's gold lies outside it).
    """
    if subset not in ("all", "demo"):
        raise UserError(f"The sample has no subset {subset!r}.", "Take `all` or `demo`.")
    with as_file(files("graphrag_bench.data").joinpath("sample")) as place:
        parts = read_folder(place)
    name = "sample" if subset == "all" else "sample-demo"
    card = known_card(name)
    if subset == "demo":
        _cut(parts, card.documents or 0, card.questions or 0)
    return make_dataset(
        name, parts.documents, parts.questions, parts.gold, triples=parts.triples,
        question_entities=parts.question_entities, card=card, notes=parts.notes, extra=parts.extra,
    )


def _cut(parts: Parts, documents: int, questions: int) -> None:
    """Keep the first documents and questions; ``make_dataset`` then refuses gold outside what is left."""
    parts.documents, parts.questions = parts.documents[:documents], parts.questions[:questions]
    inside = {row.value.id for row in parts.documents}
    asked = {row.value.id for row in parts.questions}
    parts.gold = [row for row in parts.gold if row.value[0] in asked]
    if parts.triples is not None:
        parts.triples = [row for row in parts.triples if row.value.document in inside]
    if parts.question_entities is not None:
        parts.question_entities = [row for row in parts.question_entities if row.value[0] in asked]
    for key, ids in (("documents", inside), ("questions", asked)):
        if key in parts.extra:
            parts.extra[key] = {identifier: row for identifier, row in parts.extra[key].items() if identifier in ids}
