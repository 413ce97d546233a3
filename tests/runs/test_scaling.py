"""How large a hierarchy is reckoned to be before it is built."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.scaling import covers

# (nodes, communities in all where known, those that cover it by level): the GraphRAG paper's Table 2, Podcast and News; an index
# of its repository; and the rule-made graph of the Podcast
SEEN = [
    (8564, 10**6, (34, 367, 969, 1310)),
    (15754, 10**6, (55, 555, 1797, 2142)),
    (529, 122, (23, 76, 97, 98)),
    (3830, 706, (24, 225, 547, 589)),
]


@pytest.mark.parametrize(("nodes", "communities", "seen"), SEEN)
def test_the_estimate_is_near_what_was_seen(nodes, communities, seen):
    root, *finer = zip(covers(nodes, communities), seen, strict=True)
    assert 0.6 < root[0] / root[1] < 1.6
    assert all(0.8 < guess / true < 1.25 for guess, true in finer)


@given(st.integers(0, 10**6))
def test_finer_levels_have_as_many_or_more_and_never_more_than_there_are(nodes):
    communities = -(-nodes // 4)
    found = covers(nodes, communities)
    assert list(found) == sorted(found) and found[0] >= 0 and found[-1] <= communities
