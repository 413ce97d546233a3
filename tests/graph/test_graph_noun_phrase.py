"""Names and relations found without a model: what a capital means, where a name ends, and what relates two of them."""

import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extractors.noun_phrase import extract
from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.graph.wording import words


def corpus(*texts, titles=()):
    titles = [*titles, *[""] * (len(texts) - len(titles))]
    return tuple(Chunk(n, text, titles[n], (f"d{n}",), len(text.split())) for n, text in enumerate(texts))


def names(text, *others, title="", **options):
    """The names of one text; the others say how the corpus writes its words."""
    return extract(corpus(text, *others, titles=[title]), **options).entities[0]


def triples(text, *others, title="", **options):
    return extract(corpus(text, *others, titles=[title]), **options).triples[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They met Ada Lovelace in New York.", ("Ada Lovelace", "New York")),
        ("They saw the University of Copenhagen.", ("University of Copenhagen",)),
        ("It fell to Ludwig van Beethoven and Otto of the Rhine.", ("Ludwig van Beethoven", "Otto of the Rhine")),
        ("It went from Germany to France and Spain.", ("Germany", "France", "Spain")),
        ("We know Anna, Bert and Carl.", ("Anna", "Bert", "Carl")),
        ("We met J. R. R. Tolkien of St. Ives.", ("J. R. R. Tolkien of St. Ives",)),
        ("It left the U.S. The Hague was next.", ("U.S", "Hague")),
        ("We saw Berlin's Angela Merkel.", ("Berlin", "Angela Merkel")),
        ("We heard Simon & Garfunkel and AT&T.", ("Simon & Garfunkel", "AT&T")),
        ("It was World War I, and I wept.", ("World War I",)),
        ("He told us that the US won.", ("US",)),
        ("She flew a Boeing 747 home.", ("Boeing 747",)),
        ("We saw Straße Müller, İstanbul and Ōsaka.", ("Straße Müller", "İstanbul", "Ōsaka")),
        ("nothing here, at all.", ()),
        ("", ()),
    ],
)
def test_capitalised_runs(text, expected):
    assert names(text, numbers=False) == expected


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        ("Bridges fell. Members wept.", ("the bridges and members",), ()),
        ("Ada wept.", (), ("Ada",)),
        ("Snow fell.", ("They met Snow and Snow.", "the snow"), ("Snow",)),
        ("Former Chancellor Brandt wept.", ("the former chancellor",), ("Former Chancellor Brandt",)),
        ("In Paris they met. However, it rained.", (), ("Paris",)),
        ("They asked the President.", ("the president", "a president"), ()),
    ],
)
def test_the_corpus_says_what_a_capital_means(text, others, expected):
    assert names(text, *others, numbers=False) == expected


def test_a_preposition_joins_words_the_corpus_also_writes_small():
    small = "the department for education and the award in physics"
    assert names("We saw the Department for Education.", small) == ("Department for Education",)
    assert names("We saw Anna for Education.", small) == ("Anna", "Education")


def test_quoted_titles_are_names_and_speech_is_not():
    assert names("He wrote \"The Long Way Home\" and ``Dusk'' there.", numbers=False) == ("The Long Way Home", "Dusk")
    assert names('He said "We must go home now, and Bert too."') == ("Bert",)
    assert names("他读了《红楼梦》。") == ("红楼梦",)


def test_titles_are_found_in_any_case_and_bare_of_their_brackets():
    found = extract(
        corpus(
            "It is a film.",
            "A study of person-centred therapy and Titanic.",
            titles=["Titanic (1997 film)", "Person-centred therapy"],
        )
    )
    assert found.entities[0] == ("Titanic",)
    assert found.entities[1] == ("Person-centred therapy", "Titanic")
    assert names("It was in York.", "It was in New York.", title="York") == ("York",)
    assert extract(corpus("x", "We saw New York.", titles=["York"])).entities[1] == ("New York",)


def test_the_line_of_the_title_is_no_text():
    assert triples("Mill Town\nIt has a bridge.", title="Mill Town") == ()


def test_numbers_and_dates():
    text = "It opened on 3 May 1904, cost 18,400 and closed in 1931."
    assert names(text) == ("3 May 1904", "18,400", "1931")
    assert names(text, numbers=False) == ()
    assert names("It opened on May 3, 1904.") == ("May 3, 1904",)
    assert names("They saw the 2018 Summer Games.", "the summer games", numbers=False) == ("2018 Summer Games",)
    assert triples("It opened on 3 May 1904.", "In 1904.", "In 1904.") == (("3 May 1904", "in", "1904"),)


def test_common_phrases_stand_in_two_chunks():
    texts = ("He was a civil engineer.", "She met the civil engineer.", "It was a lonely word.")
    assert extract(corpus(*texts), common=True).entities == (("civil engineer",), ("civil engineer",), ())


def test_a_last_name_is_the_full_name_of_its_chunk():
    assert names("We met Ada Lovelace. Then Lovelace wrote.") == ("Ada Lovelace",)
    assert names("Then Lovelace wrote.", title="Ada Lovelace") == ("Ada Lovelace",)
    both = names("We met Ada Lovelace and Otto Lovelace. Then Lovelace wrote.")
    assert both == ("Ada Lovelace", "Otto Lovelace", "Lovelace")


def test_names_are_spelled_alike_over_the_corpus():
    found = extract(corpus("They heard The Beatles.", "They heard the Beatles.", "They like the Beatles."))
    assert found.entities == (("Beatles",),) * 3
    assert extract(corpus("x", "They heard the Beatles.", titles=["The Beatles"])).entities[1] == ("The Beatles",)


def test_a_name_running_two_together_is_cut_where_one_is_known():
    known = ["They left the United States."] * 3
    found = names("It was the United States Dick Cheney saw.", *known)
    assert found == ("United States", "Dick Cheney")
    whole = names("It was the United States Senate.", *known, "the senate")
    assert whole == ("United States Senate",)


def test_the_predicate_is_what_stands_between_and_lists_share_it():
    found = triples("Oskar Brandt (born 1902) was born in Kiel, Bonn and Ulm.", numbers=False)
    subject = "Oskar Brandt"
    assert found == (
        (subject, "was born in", "Kiel"),
        (subject, "was born in", "Bonn"),
        (subject, "was born in", "Ulm"),
        ("Kiel", "occurs with", "Bonn"),
        ("Bonn", "occurs with", "Ulm"),
    )


def test_a_long_predicate_is_co_occurrence_or_nothing():
    text = "We saw Kiel where one two three four five six seven Bonn."
    assert triples(text) == (("Kiel", "occurs with", "Bonn"),)
    assert triples(text, cooccurrence=False) == ()
    assert triples(text, max_predicate_words=9)[0][1] == "where one two three four five six seven"


def test_the_title_is_the_subject_of_sentences_that_do_not_name_it():
    text = "Otto Brandt was a painter. He lived in Kiel. His long, long and very rainy stay in wet Ulm ended."
    assert triples(text, title="Otto Brandt") == (
        ("Otto Brandt", "lived in", "Kiel"),
        ("Otto Brandt", "occurs with", "Ulm"),
    )
    without = extract(corpus(text, titles=["Otto Brandt"]), title=False)
    assert without.entities[0] == ("Otto Brandt", "Kiel", "Ulm")


def test_a_name_is_related_to_the_name_it_ends_with():
    text = "We saw the Bank of Sierra Leone."
    assert triples(text, "to Sierra Leone", "in Sierra Leone") == (("Bank of Sierra Leone", "of", "Sierra Leone"),)
    assert "Sierra Leone" in names(text, "to Sierra Leone", "in Sierra Leone")
    assert names(text) == ("Bank of Sierra Leone",)
    texts = corpus("It is small.", "in Texas", "to Texas", titles=["Garrett, Texas"])
    assert extract(texts).triples[0] == (("Garrett, Texas", "occurs with", "Texas"),)


def test_sentences_part_names_and_relations():
    assert triples("We saw Kiel. Then Bonn came. Dr. Ulm left.", cooccurrence=False) == ()
    assert [word.text for word in words("Mr. Fox left. He ran! No? 3 came.") if word.opens] == ["Mr", "He", "No", "3"]


PIECES = ["Ada", "the", "of", "Lovelace", "May", "1904", "3", "He", "was", "born", "in", "U.S.", "“Dusk”", "—", "\n\n",
          ".", ",", "(", ")", "Ōsaka", "東京", "it's", "O'Neill's", "I", "'", "and", "&", "\u0301"]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join), min_size=1, max_size=5), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_text_gives_a_linear_number_of_clean_relations(texts, common):
    chunks = corpus(*texts, titles=["Ada of May"])
    found = extract(chunks, common=common)
    assert found == extract(chunks, common=common)
    assert len(found) == len(chunks)
    assert found.failed == {}
    for entities, told, text in zip(found.entities, found.triples, texts, strict=True):
        assert all(name == " ".join(name.split()) and phrase_key(name) for name in entities)
        assert len(set(entities)) == len(entities)
        assert {end for subject, _, object_ in told for end in (subject, object_)} <= set(entities)
        assert len(told) <= 3 * (len(text.split()) + 2)
        assert all(subject != object_ for subject, _, object_ in told)


class _Span:
    def __init__(self, text, said, label=""):
        self.start_char = text.index(said)
        self.end_char = self.start_char + len(said)
        self.label_ = label


def test_spacy_gives_entities_and_noun_chunks(monkeypatch):
    text = "The tall bridge of Kiel opened in 1904 with it."

    class Doc:
        ents = (_Span(text, "Kiel", "GPE"), _Span(text, "1904", "DATE"))
        noun_chunks = tuple(_Span(text, said) for said in ("The tall bridge", "Kiel", "it"))

        def has_annotation(self, name):
            return name == "DEP"

    def load(name):
        if name != "small":
            raise OSError(name)
        return types.SimpleNamespace(pipe=lambda texts: [Doc() for _ in texts])

    monkeypatch.setitem(sys.modules, "spacy", types.SimpleNamespace(load=load))
    given = {"engine": "spacy", "spacy_model": "small"}
    assert names(text, **given) == ("tall bridge", "Kiel", "1904")
    assert names(text, numbers=False, **given) == ("tall bridge", "Kiel")
    with pytest.raises(UserError, match="no model called 'large'") as error:
        names(text, engine="spacy", spacy_model="large")
    assert "spacy download large" in error.value.fix


def test_spacy_must_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(UserError, match="not installed") as error:
        names("Kiel.", engine="spacy")
    assert "graph.engine=rule" in error.value.fix
