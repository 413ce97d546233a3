"""The packing of the GraphRAG paper (section 3.1.4) against a plain reading of it, and the place of claims in it."""

from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.community.elements import Elements, Line
from graphrag_bench.community.packing import pack
from graphrag_bench.graph.claims import CLAIM_SCHEMA


def words(text):
    return len(text.split())


def naive(lines, reports, room):
    """What the paper says, with the headings' tokens: substitute, largest first, until the elements fit; else cut the end."""
    room -= words("What is known:")
    if sum(words(line.text) for line in lines) <= room:
        return [], [line.text for line in lines]
    sizes = {part: sum(words(line.text) for line in lines if line.part == part) for part in reports}
    told = []
    for part in sorted(reports, key=lambda part: (-sizes[part], part)):
        if words(reports[part]) < sizes[part]:
            room -= 0 if told else words("Reports on parts of the group:")
            told.append(part)
            left = [line.text for line in lines if line.part not in told]
            if sum(words(reports[part]) for part in told) + sum(map(words, left)) <= room:
                break
    left = [line.text for line in lines if line.part not in told]
    shown = []
    for text in [*(reports[part] for part in told), *left]:
        if sum(map(words, shown)) + words(text) > room:
            break
        shown.append(text)
    return shown[: len(told)], shown[len(told) :]


texts = st.integers(1, 6).map(lambda n: " ".join("w" * n).strip())


@settings(max_examples=200)
@given(
    st.lists(st.tuples(texts, st.integers(-1, 3)), max_size=12),
    st.dictionaries(st.integers(0, 3), st.integers(1, 9), max_size=4),
    st.integers(12, 60),
)
def test_against_a_plain_reading_of_the_paper(rows, sizes, room):
    lines = [Line(f"{text} {n}", part) for n, (text, part) in enumerate(rows)]
    reports = {part: " ".join([f"#{part}", *["r"] * size]) for part, size in sizes.items()}
    packed = pack(lines, reports, room, words)
    told, elements = naive(lines, reports, room)
    if not told and not elements and lines:  # then a part of the first is shown, which the paper leaves open
        assert words(packed.text) <= room
        return
    blocks = ["Reports on parts of the group:", *told] if told else []
    blocks += ["\n".join(["What is known:", *elements])] if elements else []
    assert packed.text == ("\n\n".join(blocks) if blocks else packed.text)
    assert words(packed.text) <= room


def with_claims(graph, *rows):
    columns = ("subject", "object", "type", "status", "description")
    told = [
        {**dict.fromkeys(CLAIM_SCHEMA.names, ""), "chunk": 0, **dict(zip(columns, row, strict=True))} for row in rows
    ]
    return replace(graph, claims=pa.Table.from_pylist(told, CLAIM_SCHEMA))


def test_claims_stand_behind_the_elements_they_concern_and_before_the_relationship(small):
    graph = small.graph_of(
        5, [(0, 1), (1, 2)], names=list("ABCDE"), descriptions=["a", "b", "c", "d", "e"], types=[""] * 5
    )
    graph = with_claims(
        graph, (2, -1, "fraud", "true", "C lied."), (1, 0, "gift", "false", "B gave."), (0, -1, "", "", "A came."),
        (3, -1, "", "", "D alone."), (4, -1, "", "", "E is elsewhere."), (1, -1, "", "", "B went."),
    )  # fmt: skip
    graph = graph.with_communities(small.hierarchy_of(5, (0, -1, [0, 1, 2, 3]), (1, 0, [0, 1]), (1, 0, [2, 3])), None)
    lines = Elements(graph).lines(0)
    assert [line.text for line in lines] == [
        "A: a", "B: b", "Claim on A: A came.", "Claim on B and A (gift, false): B gave.", "Claim on B: B went.", "A — r → B",
        "C: c", "Claim on C (fraud, true): C lied.", "B — r → C",
        "D: d", "Claim on D: D alone.",
    ]  # fmt: skip
    assert [line.part for line in lines] == [1, 1, 1, 1, 1, 1, 2, 2, -1, 2, 2]
    bare = replace(graph, claims=None)
    assert [line.text for line in Elements(bare).lines(0)] == [
        line.text for line in lines if not line.text.startswith("Claim")
    ]
