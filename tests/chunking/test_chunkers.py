"""From documents to chunks."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.chunking.presplit import presplit
from graphrag_bench.chunking.sentences import sentences
from graphrag_bench.chunking.tokens import tokens
from graphrag_bench.chunking.types import Chunk, Documents
from graphrag_bench.data.types import Document
from graphrag_bench.errors import UserError
from graphrag_bench.registry import REGISTRY

TWO = (Document("a", "Title", "one two three four five"), Document("b", "", "six seven"))


def test_windows_bear_the_title_and_never_cross_documents() -> None:
    assert tokens(TWO, size=3, overlap=1) == (
        Chunk(0, "Title\none two three", "Title", ("a",), 5),
        Chunk(1, "Title\nthree four five", "Title", ("a",), 5),
        Chunk(2, "six seven", "", ("b",), 2),
    )
    assert [c.text for c in tokens(TWO, size=3, overlap=1, prepend_title=False)] == [
        "one two three", "three four five", "six seven",
    ]  # fmt: skip


def test_sentences_fill_chunks_whole_and_long_ones_are_divided() -> None:
    text = "One two three. Four five! Six seven eight nine ten, eleven twelve. End"
    assert [(c.text, c.tokens) for c in sentences((Document("a", "", text),), size=8)] == [
        ("One two three. Four five!", 7),
        ("Six seven eight nine ten,", 6),
        ("eleven twelve. End", 4),
    ]
    assert [c.text for c in sentences((Document("a", "", "a b c d e"),), size=2)] == ["a b", "c d", "e"]
    repeated = sentences((Document("a", "", "A b. C d. E f."),), size=6, overlap=3)
    assert [c.text for c in repeated] == ["A b. C d.", "C d. E f."]
    assert [c.text for c in sentences((Document("a", "T", "One.\n\nTwo."),), size=2)] == ["T\nOne.", "T\nTwo."]


@given(st.text(alphabet="ab .,\n!", max_size=200), st.integers(1, 12), st.integers(0, 11))
def test_no_word_is_lost_between_sentences(text: str, size: int, overlap: int) -> None:
    if overlap >= size:
        return
    text = text.strip()  # white space at the ends of a text is left as it is, and counted
    made = sentences((Document("a", "", text),), size=size, overlap=overlap)
    assert all(c.tokens <= size for c in made)
    if overlap == 0:
        words = "".join(c.text for c in made)
        assert "".join(words.split()) == "".join(text.split()) or len({c.text for c in made}) == len(made) > 0


def test_exact_duplicates_merge_and_keep_all_documents_in_order() -> None:
    documents = (
        Document("a", "T", "same"), Document("b", "", "other"), Document("c", "T", "same"), Document("d", "U", "same"),
    )  # fmt: skip
    assert [(c.id, c.text, c.documents) for c in presplit(documents)] == [
        (0, "T\nsame", ("a", "c")), (1, "other", ("b",)), (2, "U\nsame", ("d",)),
    ]  # fmt: skip
    bare = presplit(documents, prepend_title=False)
    assert [(c.text, c.title, c.documents) for c in bare] == [("same", "T", ("a", "c", "d")), ("other", "", ("b",))]


def test_a_document_that_repeats_itself_is_named_once() -> None:
    assert [c.documents for c in tokens((Document("a", "", "la la la la"),), size=2, overlap=0)] == [("a",)]


def test_presplit_leaves_a_text_as_it_is_and_cuts_only_when_told() -> None:
    long = Document("a", "", " one two three four five\n")
    assert [c.text for c in presplit((long,))] == [long.text]
    assert [c.text for c in presplit((long,), max_tokens=6, overlap=1)] == [long.text]
    assert [c.text for c in presplit((long,), max_tokens=4, overlap=1)] == [" one two three four", "four five\n"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"size": 0}, "A chunk size of 0 tokens cuts nothing"),
        ({"size": 100}, "An overlap of 100 tokens does not fit windows of 100"),
        ({"overlap": -1}, "An overlap of -1 tokens"),
        ({"tail": "cut"}, "no tail rule 'cut'"),
        ({"tokenizer": "nope"}, "The tokenizer 'nope' is neither known nor a file"),
    ],
)
def test_settings_that_make_no_windows(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        tokens(TWO, **settings)


def test_presplit_checks_its_settings() -> None:
    with pytest.raises(UserError, match="overlap of 100 tokens does not fit windows of 50"):
        presplit(TWO, max_tokens=50)


ROWS = st.tuples(st.sampled_from(["", "T", "U"]), st.text("ab 日😀\n", min_size=1, max_size=40))
DOCUMENTS = st.lists(ROWS, max_size=6).map(
    lambda rows: tuple(Document(str(n), title, text) for n, (title, text) in enumerate(rows))
)


@given(documents=DOCUMENTS, size=st.integers(2, 9))
def test_chunks_are_slices_of_their_documents_and_lose_no_mark(documents: Documents, size: int) -> None:
    chunks = tokens(documents, size=size, overlap=1, prepend_title=False)
    assert [chunk.id for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.text for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert chunk.text.strip() and len(set(chunk.documents)) == len(chunk.documents)
        assert all(chunk.text in documents[int(identifier)].text for identifier in chunk.documents)
    for document in documents:
        own = "".join(chunk.text for chunk in chunks if document.id in chunk.documents)
        assert set(document.text) - set(own) <= set(" \n")


def test_every_page_of_the_group_sets_what_its_chunker_takes() -> None:
    pages = sorted((Path(__file__).parents[2] / "conf" / "chunking").glob("*.yaml"))
    assert {page.stem for page in pages} >= {"tokens", "presplit"}
    for page in pages:
        settings = yaml.safe_load(page.read_text())
        component = REGISTRY.get("chunker", settings.pop("chunker"))
        assert component.settings.keys() == settings.keys(), page.name
        if page.stem == component.name:  # the page called after the chunker says its defaults
            assert {name: setting.default for name, setting in component.settings.items()} == settings, page.name
        assert [port.annotation for port in component.ports] == [Documents]
