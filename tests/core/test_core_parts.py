"""Components made of parts: a clusterer that takes an augmenter and a partitioner, and one that takes neither."""

import pytest

from graphrag_bench.cells import cells
from graphrag_bench.errors import UserError

METHOD = ("method=hipporag", "graph.extractor=noun_phrase", "community.reports=null")
OURS = (*METHOD, "community=attributed", "community.vectors=members")


def settings(*overrides: str) -> dict[str, object]:
    ((cell,), _) = cells([*overrides])
    return dict(cell.config["community"])


def test_a_part_that_gives_way_takes_the_pages_settings_of_it_along():
    """attributed.yaml sets quantile for knn and max_size for leiden; other parts have no such setting."""
    assert {"quantile", "max_size"} <= set(settings(*OURS))
    other = settings(*OURS, "community.augment=codicil", "community.partition=scan", "community.epsilon=0.7")
    assert {"quantile", "max_size"}.isdisjoint(other) and other["epsilon"] == 0.7
    assert "max_size" in settings(*OURS, "community.augment=codicil")


def test_what_is_typed_for_a_part_that_is_not_there_is_a_fault():
    with pytest.raises(UserError, match="has no setting 'max_size'"):
        settings(*OURS, "community.partition=scan", "community.max_size=5")


def test_a_clusterer_without_parts_has_no_such_setting():
    with pytest.raises(UserError, match="clusterer leiden has no setting 'augment'"):
        settings(*METHOD, "community=leiden", "community.augment=knn")
    assert {"augment", "partition"}.isdisjoint(settings(*METHOD, "community=attributed", "community.clusterer=leiden"))


def test_in_a_sweep_the_cells_without_parts_are_one_and_what_they_do_not_read_is_said_of_them():
    found, notices = cells(
        [*OURS[:-2], "community=attributed,leiden", "community.augment=knn,none", "community.vectors=members"],
        multirun=True,
    )
    assert [cell.axes for cell in found] == [
        {"community": "attributed", "community.augment": "knn"},
        {"community": "attributed", "community.augment": "none"},
        {"community": "leiden"},
    ]
    assert notices == ["community.vectors=members has no effect on some cells of hipporag"]
