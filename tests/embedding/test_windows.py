import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.embedding.vectors import check_texts, unit_rows
from graphrag_bench.embedding.windows import cut_text, estimate_tokens, merge, spans
from graphrag_bench.errors import UserError


def test_a_text_that_fits_is_one_window():
    assert spans(8, 8, "mean") == [(0, 8)]


def test_windows_overlap_by_a_quarter_and_the_last_one_is_full():
    assert spans(15, 8, "mean") == [(0, 8), (6, 14), (7, 15)]


def test_truncate_keeps_the_first_window():
    assert spans(15, 8, "truncate") == [(0, 8)]


@given(st.integers(1, 500), st.integers(1, 60))
def test_windows_cover_everything(length, window):
    cut = spans(length, window, "mean")
    assert {i for start, stop in cut for i in range(start, stop)} == set(range(length))
    assert all(stop - start == min(window, length) for start, stop in cut)


def test_merge_is_the_mean_by_owner():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]])
    assert merge(rows, [0, 0, 1], 2).tolist() == [[0.5, 0.5], [3.0, 3.0]]


def test_text_is_cut_by_an_estimate_that_does_not_run_over():
    assert estimate_tokens("abcd") == 2
    assert estimate_tokens("漢字") == 2
    pieces = cut_text("x" * 100, 10, "mean")
    assert all(estimate_tokens(piece) <= 10 for piece in pieces)
    assert cut_text("x" * 100, 10, "truncate") == pieces[:1]


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_text_is_named_by_its_position(text):
    with pytest.raises(UserError, match="Text 2 of 2 is empty"):
        check_texts(["a", text])


@pytest.mark.parametrize(("value", "what"), [(0.0, "zeros only"), (np.nan, "not finite"), (np.inf, "not finite")])
def test_a_row_without_direction_is_an_error_that_shows_the_text(value, what):
    with pytest.raises(UserError, match=f"{what}.*'bad'"):
        unit_rows(np.array([[1.0, 1.0], [value, value]]), ["good", "bad"])
