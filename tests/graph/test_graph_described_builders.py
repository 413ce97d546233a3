"""Textual and rich knowledge graphs: how records of many chunks become one node, one relationship, one description."""

import asyncio
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.builders import kg, rkg, tkg
from graphrag_bench.graph.described import RKG, TKG
from graphrag_bench.graph.extraction import EntityRecord, Extraction, RelationRecord, RichExtraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.records import content_words
from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.llm.window import estimate_tokens
from graphrag_bench.registry import REGISTRY

E, R = EntityRecord, RelationRecord


class Model:
    """Merges by a rule, or fails; keeps what it was asked. A token is a word."""

    window = 4096
    concurrency = 4

    def __init__(self, failure=None):
        self.failure = failure
        self.requests = []
        self.counted = 0

    async def ask_all(self, requests):
        self.requests += requests
        return [
            Reply("" if self.failure else f" All of  {r.subject}.\n", None, 9, 9, 0.0, failure=self.failure)
            for r in requests
        ]

    def count(self, text):
        self.counted += 1
        return len(text.split())


def built(*rows, kind=tkg, model=None, **options):
    """Build the graph of rows of (entities, relations), a row a chunk."""
    entities, relations = zip(*rows, strict=True) if rows else ((), ())
    extraction = RichExtraction(tuple(map(tuple, entities)), tuple(map(tuple, relations)))
    chunks = tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(len(rows)))
    return asyncio.run(kind.build(chunks, extraction, HashingEmbedder(), model or Model(), **options))


def nodes(made):
    return [(row["name"], row["type"], row["description"]) for row in made.graph.nodes.to_pylist()]


def facts(made, *columns):
    graph = made.graph
    rows = [row for row in graph.relationships.to_pylist() if row["kind"] == "fact"]
    return [(*graph.names([row["source"], row["target"]]), *(row[column] for column in columns)) for row in rows]


def test_an_entity_is_one_node_over_all_chunks_with_what_each_says_of_it():
    made = built(
        ([E("Ada Brown", "person", "An engineer."), E("Ulm", "location", "A town")], []),
        ([E("ada brown!", "other", "an ENGINEER"), E("ADA BROWN", "other", "She left Ulm")], []),
        ([E("Ulm", "event", "A town"), E("...", "person", "nobody")], []),
    )
    # the first spelling; the most frequent type, of equals the first met; distinct descriptions, as sentences
    assert nodes(made) == [
        ("Ada Brown", "other", "An engineer. She left Ulm."),
        ("Ulm", "location", "A town"),
    ]
    assert made.graph.node_chunk.toarray().tolist() == [[1, 1, 0], [1, 0, 1]]
    assert made.graph.attributes == set(TKG)
    assert "keywords" not in made.graph.relationships.column_names
    assert made.facts["described_nodes"] == 2
    assert (made.facts["merges"], made.facts["cut"], dict(made.failed)) == (0, 0, {})


def test_statements_of_a_pair_are_kept_apart_with_their_direction_and_their_chunks():
    entities = [E("Ada", "person", "x"), E("Bob", "person", "y")]
    met, saw = R("Ada", "Bob", "", "They met.", (), 4.0), R("Ada", "Bob", "", "Ada saw Bob.", (), 1.0)
    made = built(
        (entities, [met, saw, R("Bob", "Ada", "", "They met.", (), 2.0)]),
        ([], [R("ADA", "bob", "", "they met", (), 5.0), R("Ada", "ada", "", "Ada is Ada.", (), 1.0)]),
    )
    assert facts(made, "description", "weight", "name") == [
        ("Ada", "Bob", "They met.", 9.0, ""),
        ("Ada", "Bob", "Ada saw Bob.", 1.0, ""),
        ("Bob", "Ada", "They met.", 2.0, ""),
        ("Ada", "Ada", "Ada is Ada.", 1.0, ""),
    ]
    assert made.graph.relationship_chunk.toarray().tolist() == [[1, 1], [1, 0], [1, 0], [0, 1]]
    counted = built((entities, [met, met, saw]), ([], [met]), weight="count")
    assert facts(counted, "weight") == [("Ada", "Bob", 2.0), ("Ada", "Bob", 1.0)]


def test_merged_an_ordered_pair_is_one_relationship_of_all_its_statements():
    made = built(
        (
            [E("Ada", "person", "x")],
            [
                R("Ada", "Bob", "met", "They met", ("meeting, talk", "Ulm"), 4.0),
                R("Bob", "Ada", "", "Back.", ("z",), 2.0),
            ],
        ),
        (
            [],
            [
                R("Ada", "Bob", "saw", "Ada saw Bob.", ("ulm", "view"), 3.0),
                R("ada", "BOB", "Met", "they met.", (), 4.0),
            ],
        ),
        kind=rkg,
        parallel="merge",
    )
    assert facts(made, "name", "description", "keywords", "weight") == [
        ("Ada", "Bob", "met, saw", "They met. Ada saw Bob.", "meeting, talk, Ulm, view", 11.0),
        ("Bob", "Ada", "", "Back.", "z", 2.0),
    ]
    assert made.graph.relationship_chunk.toarray().tolist() == [[1, 1], [1, 0]]
    assert made.graph.attributes == set(RKG)


def test_keywords_of_a_kept_statement_are_those_of_all_chunks_that_make_it():
    said = [R("Ada", "Bob", "", "They met.", words, 1.0) for words in (("a", "b"), ("B", "c"), ())]
    made = built(([E("Ada", "", "x")], said[:1]), ([], said[1:2]), ([], said[2:]), kind=rkg)
    assert facts(made, "keywords", "weight") == [("Ada", "Bob", "a, b, c", 3.0)]


def test_ends_that_no_chunk_names_as_entities_are_nodes_and_names_in_every_script_keep_apart():
    made = built(([E("कल", "person", "कल आज।"), E("कला", "other", "東京は都")], [R("Ülm", "कल", "", "über.", (), 1.0)]))
    assert nodes(made) == [("कल", "person", "कल आज।"), ("कला", "other", "東京は都"), ("Ülm", "", "")]
    assert facts(made, "description") == [("Ülm", "कल", "über.")]


def long(word, count=6):
    return " ".join([word] * count) + "."


def test_descriptions_too_long_are_merged_by_the_model_and_booked_to_the_graph():
    model = Model()
    made = built(
        ([E("Ada", "person", long("a")), E("Bob", "person", long("b"))], [R("Ada", "Bob", "", long("r"), (), 1.0)]),
        ([E("Ada", "person", long("c"))], [R("Ada", "Bob", "", long("s"), (), 1.0)]),
        model=model,
        parallel="merge",
        summary_threshold=11,
        summary_tokens=33,
    )
    assert nodes(made) == [("Ada", "person", "All of Ada."), ("Bob", "person", long("b"))]
    assert facts(made, "description") == [("Ada", "Bob", "All of Ada – Bob.")]
    one, two = model.requests
    assert [(r.stage, r.purpose, r.subject, r.max_tokens) for r in (one, two)] == [
        ("graph", "merge", "Ada", 33),
        ("graph", "merge", "Ada – Bob", 33),
    ]
    assert one.messages[0] == two.messages[0]
    assert one.messages[1].text == f"Name: Ada\n\nDescriptions:\n- {long('a')}\n- {long('c')}"
    assert (made.facts["merges"], made.facts["cut"], made.facts["failed"]) == (2, 0, {})


def test_a_failed_merge_leaves_the_joined_text_cut_and_is_told():
    model = Model(Failure("timeout", "60 s"))
    made = built(
        ([E("Ada", "person", long("a")), E("Ada b", "person", "c")], []),
        ([E("Ada", "", long("b"))], []),
        model=model,
        summary_threshold=8,
    )
    assert nodes(made)[0] == ("Ada", "person", "a a a a a a. b b")
    assert made.failed == {"Ada": "timeout: 60 s"}
    assert (made.facts["merges"], made.facts["cut"], made.facts["failed"]) == (1, 1, {"timeout": 1})


def test_every_failed_merge_counts_also_of_relationships_between_the_same_two():
    relations = [R("Ada", "Bob", "", f"{long(letter)} {letter} {letter}") for letter in "abc"]
    made = built(
        ([E("Ada", "person", "x"), E("Bob", "person", "y")], relations),
        model=Model(Failure("timeout", "60 s")),
        summary_threshold=3,
    )
    assert (made.facts["merges"], made.facts["failed"]) == (3, {"timeout": 3})
    assert list(made.failed) == ["Ada – Bob", "Ada – Bob (2)", "Ada – Bob (3)"]


def test_a_merge_that_does_not_fit_the_window_is_asked_with_what_fits():
    model = Model()
    model.window = 400
    made = built(*[([E("Ada", "person", long(f"w{n}", 60))], []) for n in range(9)], model=model, summary_tokens=100)
    [asked] = model.requests
    assert 100 < model.count(asked.messages[1].text) < 300
    assert (made.facts["cut_prompts"], made.facts["merges"]) == (1, 1)


def test_without_merging_descriptions_are_cut_by_an_estimate_and_no_model_is_there():
    text = "Ada built the bridge over the river and lived in the town. "
    made = built(
        ([E("Ada", "person", text * 3), E("Bob", "person", "short")], []), model=None, merge="cut", summary_threshold=40
    )
    [(_, _, description), bob] = nodes(made)
    assert (text * 3).startswith(description)
    assert estimate_tokens(description) <= 40
    assert len(description) > len(text)
    assert bob[2] == "short"
    assert (made.facts["merges"], made.facts["cut"]) == (0, 1)
    with pytest.raises(UserError, match="merge=model wants a model"):
        asyncio.run(tkg.build((), RichExtraction((), ()), HashingEmbedder(), None))


def test_short_descriptions_never_reach_the_tokenizer():
    model = Model()
    built(([E("Ada", "person", "short")], [R("Ada", "Bob", "", "They met.", (), 1.0)]), model=model)
    assert (model.counted, model.requests) == (0, [])


def triples(*rows):
    return RichExtraction.of(Extraction(tuple(() for _ in rows), rows))


def of_triples(extraction, kind=tkg, **options):
    chunks = tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(len(extraction)))
    settings = {"describe": "name+triples", "merge": "cut", **options}
    return asyncio.run(kind.build(chunks, extraction, HashingEmbedder(), None, **settings))


def test_names_and_triples_make_descriptions_and_keywords_without_a_model():
    plain = triples((("Ada", "built", "Glass Bridge"), ("Bob", "was born in", "Ulm")), (("ADA", "is in", "Ulm"),))
    rich = RichExtraction((*plain.entities[:1], (E("Zed"),)), plain.relations)
    made = of_triples(rich, kind=rkg)
    assert [(name, said) for name, _, said in nodes(made)] == [
        ("Ada", "Ada built Glass Bridge. Ada is in Ulm."),
        ("Glass Bridge", "Ada built Glass Bridge."),
        ("Bob", "Bob was born in Ulm."),
        ("Ulm", "Bob was born in Ulm. Ada is in Ulm."),
        ("Zed", "Zed"),
    ]
    assert facts(made, "name", "description", "keywords", "weight") == [
        ("Ada", "Glass Bridge", "built", "Ada built Glass Bridge", "built", 1.0),
        ("Bob", "Ulm", "was born in", "Bob was born in Ulm", "born", 1.0),
        ("Ada", "Ulm", "is in", "Ada is in Ulm", "is, in", 1.0),
    ]


def test_what_is_described_stays_and_what_is_not_takes_what_its_relations_say():
    rows = ([E("Ada", "person", "An engineer.")], [R("Ada", "Bob", "", "Ada taught Bob", (), 3.0), R("Bob", "Ada")])
    made = built(rows, describe="name+triples")
    assert nodes(made) == [("Ada", "person", "An engineer."), ("Bob", "", "Ada taught Bob. Bob related to Ada.")]


def test_a_description_of_triples_is_bounded_in_number_and_in_tokens():
    star = triples(tuple(("Hub", "has the part", f"Part number {n}") for n in range(30)))
    assert nodes(of_triples(star, described_triples=3))[0][2].count(".") == 3
    text = nodes(of_triples(star, described_triples=99, summary_threshold=50))[0][2]
    assert estimate_tokens(text) <= 50
    assert text.startswith("Hub has the part Part number 0. Hub has")
    assert of_triples(star, summary_threshold=50).facts["cut"] == 0
    loop = triples((("Ada", "knows", "Ada"), ("Ada", "knows", "Ada")))
    assert nodes(of_triples(loop)) == [("Ada", "", "Ada knows Ada.")]


def test_a_graph_that_would_lack_what_it_promises_is_refused():
    bare = triples((("Ada", "met", "Bob"),))
    with pytest.raises(UserError, match=r"No entity .* has a description") as caught:
        of_triples(bare, describe="none")
    assert "name+triples" in caught.value.fix
    wordless = ([E("Ada", "person", "x")], [R("Ada", "Bob", "", "They met.")])
    with pytest.raises(UserError, match=r"No relation .* has keywords"):
        built(wordless, kind=rkg)
    with pytest.raises(UserError, match="keywords=true"):
        built(wordless, kind=rkg, keywords=False)
    assert facts(built(wordless), "weight") == [("Ada", "Bob", 1.0)]
    for kind in (tkg, rkg):
        empty = built(([], []), ([], []), kind=kind)
        assert (empty.graph.n_nodes, empty.graph.n_relationships, empty.graph.n_chunks) == (0, 0, 2)


def test_synonym_edges_are_drawn_only_when_asked():
    rows = (
        [E("Glass Bridge", "", "x"), E("Glass Bridges", "", "y"), E("Ulm", "", "z")],
        [R("Ulm", "Glass Bridge", "", "s", ("k",))],
    )
    assert built(rows).graph.statistics()["by_kind"] == {"fact": 1}
    made = built(rows, kind=rkg, synonym_threshold=0.3)
    assert made.graph.statistics()["by_kind"] == {"fact": 1, "synonym": 1}
    edge = made.graph.relationships.to_pylist()[1]
    assert (edge["source"], edge["target"], edge["name"], edge["description"], edge["keywords"]) == (
        0,
        1,
        "synonym of",
        "",
        "",
    )
    assert made.graph.relationship_chunk.toarray().tolist() == [[1], [0]]


def test_the_hook_says_whether_the_model_may_be_asked():
    for name, provides in (("tkg", TKG), ("rkg", RKG)):
        component = REGISTRY.get("builder", name)
        assert component.provides == provides
        assert component.extra["spends"]({"merge": "model"}) is True
        assert component.extra["spends"]({"merge": "cut"}) is False


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("was born in", ("born",)),
        ("is in", ("is", "in")),
        ("Directed BY directed", ("directed",)),
        ("", ()),
        ("在", ("在",)),
    ],
)
def test_content_words(predicate, words):
    assert content_words(predicate) == words


NAMES = st.sampled_from(["Ada", "ada!", "ADA", "Bob", "Ünsal", "ünsal", "東京", "..."])
TRIPLES = st.lists(st.tuples(NAMES, st.sampled_from(["met", "Met", "saw", "?"]), NAMES), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(TRIPLES, min_size=1, max_size=4))
def test_triples_give_the_nodes_facts_and_weights_of_the_knowledge_graph(rows):
    plain = Extraction(tuple(() for _ in rows), tuple(tuple(row) for row in rows))
    chunks = tuple(Chunk(n, "", "", (f"d{n}",), 0) for n in range(len(rows)))
    wanted = kg.build(chunks, plain, HashingEmbedder(), synonym_threshold=None)
    wanted = getattr(wanted, "graph", wanted)
    made = of_triples(RichExtraction.of(plain)).graph
    assert made.nodes["name"].to_pylist() == wanted.nodes["name"].to_pylist()
    assert made.relationships.select(wanted.relationships.column_names).equals(wanted.relationships)
    assert (made.node_chunk != wanted.node_chunk).nnz == 0
    assert (made.relationship_chunk != wanted.relationship_chunk).nnz == 0


WORDS = st.sampled_from(["They met", "they met.", "A saw B", "東京。", "x, y"])
RELATIONS = st.builds(
    R,
    NAMES,
    NAMES,
    st.sampled_from(["", "met"]),
    WORDS,
    st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    st.integers(1, 10).map(float),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(RELATIONS, max_size=6), min_size=1, max_size=4))
def test_merging_pairs_conserves_weight_and_chunks(rows):
    rows = [([E("Seed", "person", "x")], row) for row in rows]
    kept, merged = (built(*rows, kind=rkg, parallel=how).graph for how in ("keep", "merge"))
    assert kept.nodes.equals(merged.nodes)
    assert merged.weights.sum() == pytest.approx(kept.weights.sum())
    pairs = list(zip(merged.sources.tolist(), merged.targets.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    for number, pair in enumerate(pairs):
        own = [
            at
            for at, other in enumerate(zip(kept.sources, kept.targets, strict=True))
            if tuple(map(int, other)) == pair
        ]
        assert merged.weights[number] == pytest.approx(kept.weights[own].sum())
        chunks = np.flatnonzero(kept.relationship_chunk.toarray()[own].any(axis=0))
        assert np.flatnonzero(merged.relationship_chunk.toarray()[number]).tolist() == chunks.tolist()


def test_the_same_records_give_the_same_graph_and_it_is_opened_as_saved(tmp_path):
    names = ["Ada", "Bob", "Cy", "Ulm", "東京"]
    rows = [
        (
            [E(a, "person", f"{a} of chunk {n}.") for a in names[n:]],
            [R(a, b, "", f"{a} knows {b}.", ("k",), 2.0) for a, b in pairwise(names)],
        )
        for n in range(4)
    ]
    one, two = (built(*rows, kind=rkg).graph for _ in range(2))
    assert one.nodes.equals(two.nodes)
    assert one.relationships.equals(two.relationships)
    one.save(tmp_path)
    opened = Graph.open(tmp_path)
    assert opened.attributes == set(RKG)
    assert opened.relationships.to_pylist() == one.relationships.to_pylist()
    assert opened.label(0) == "Ada knows Bob."
