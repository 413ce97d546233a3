"""The bundled sample is what its cards say, and stands alone."""

from importlib.resources import files

import pytest
import yaml

from graphrag_bench.data.card import known_card
from graphrag_bench.data.loaders.sample import sample
from graphrag_bench.errors import UserError


@pytest.mark.parametrize("subset", ["all", "demo"])
def test_the_sample_is_what_its_card_says(subset: str) -> None:
    data = sample(subset=subset)  # type: ignore[arg-type]
    assert (len(data.documents), len(data.questions), data.sha256) == (
        data.card.documents, data.card.questions, data.card.sha256,
    )  # fmt: skip
    assert not any("card" in note for note in data.notes)
    assert data.triples is not None and len(data.triples) == len(data.documents)
    assert data.question_entities is not None and data.question_entities.keys() == data.gold.keys()


def test_the_demo_is_large_enough_and_a_part_of_the_whole() -> None:
    whole, demo = sample(), sample(subset="demo")
    assert len(demo.documents) >= 16 and len(demo.questions) >= 10
    assert demo.documents == whole.documents[: len(demo.documents)]
    assert demo.questions == whole.questions[: len(demo.questions)]
    assert all(demo.gold[question.id] == whole.gold[question.id] for question in demo.questions)
    inside = {document.id for document in demo.documents}
    assert all(inside.issuperset(gold.passages) for gold in demo.gold.values())


def test_a_demo_whose_gold_lies_outside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "graphrag_bench.data.loaders.sample.known_card",
        lambda name: known_card(name).__class__(name, documents=1, questions=12),
    )
    with pytest.raises(UserError, match="which is not in the corpus"):
        sample(subset="demo")


def test_there_is_no_other_subset() -> None:
    with pytest.raises(UserError, match="no subset 'tiny'"):
        sample(subset="tiny")  # type: ignore[arg-type]


def test_every_card_that_ships_is_sound() -> None:
    names = [entry.name for entry in files("graphrag_bench.data").joinpath("cards").iterdir()]
    assert len(names) >= 16
    for name in names:
        card = known_card(name.removesuffix(".yaml"))
        assert yaml.safe_load(files("graphrag_bench.data").joinpath("cards", name).read_text())["name"] == card.name
        assert f"{card.name}.yaml" == name
        assert card.source and card.licence and card.documents is not None and len(card.sha256) == 64
