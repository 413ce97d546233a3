"""The real datasets load, and are what their cards and their description say."""

from pathlib import Path

import pytest

from graphrag_bench.data.loaders.folder import folder
from graphrag_bench.errors import UserError

pytestmark = pytest.mark.shared

WITH_CORPUS = [
    "2wikimultihopqa_101", "graphrag_christmas_carol", "hirag_mix", "hotpotqa_dev500", "hotpotqa_train100",
    "kevin_scott_podcast", "lihuaworld", "msft_transcripts", "multihoprag_chunks", "multihoprag_small",
    "musique_dev100", "musique_ket500", "musique_train100", "popqa_sub",
]  # fmt: skip


@pytest.mark.parametrize("name", WITH_CORPUS)
def test_a_real_dataset_agrees_with_its_card(shared_data: Path, name: str) -> None:
    data = folder(path=str(shared_data / name))
    assert data.card.sha256 == data.sha256
    assert not any("card" in note for note in data.notes)


def test_the_given_triples_of_musique_are_counted_as_its_description_does(shared_data: Path) -> None:
    data = folder(path=str(shared_data / "musique_train100"))
    assert data.triples is not None and len(data.triples) == 1890
    assert sum(len(row.triples) for row in data.triples) == 17_234
    assert sum(len(row.entities) for row in data.triples) == 17_658
    assert sum(not row.triples for row in data.triples) == 2
    assert "185 malformed entities or triples of the given OpenIE were set aside." in data.notes


def test_questions_of_hotpotqa_have_entities(shared_data: Path) -> None:
    data = folder(path=str(shared_data / "hotpotqa_dev500"))
    assert data.question_entities is not None and all(data.question_entities[q.id] for q in data.questions)


def test_a_set_of_questions_alone_is_refused(shared_data: Path) -> None:
    with pytest.raises(UserError, match="has no corpus"):
        folder(path=str(shared_data / "lfrqa"))
