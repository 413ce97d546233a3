"""The rows of an incidence as lists of ids, as files of text want them."""

from itertools import pairwise

from graphrag_bench.graph.graph import Incidence


def rows(matrix: Incidence) -> list[list[int]]:
    """Return the columns of each row, rising."""
    ids = matrix.indices.tolist()
    return [sorted(ids[start:end]) for start, end in pairwise(matrix.indptr.tolist())]
