"""The Pareto front: which cells stand on it, how it is printed and drawn, what the experiment's reports write."""

import json
import random
from xml.etree import ElementTree

import pytest

from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.experiment import REPORTS
from graphrag_bench.report.pareto import pareto
from graphrag_bench.report.scatter import _decades, scatter


def cell(method, recall, milliseconds, dataset="musique", **fields):
    metrics = {"recall@5": {"value": recall, "n": 10, "ci": [recall - 0.1, recall + 0.1]}}
    settings = {"metrics": metrics, "seconds": {"retrieve": milliseconds / 100}, "asked": 10, "answered": 10}
    return CellResult(method, dataset, **(settings | fields))


CELLS = [
    cell("slow", 0.9, 40.0),
    cell("fast", 0.4, 1.0),
    cell("fast and bad", 0.3, 1.0),
    cell("twin b", 0.6, 5.0),
    cell("twin a", 0.6, 5.0),
    cell("as good and slower", 0.6, 6.0),
    cell("beaten", 0.5, 7.0),
]


def test_the_front_and_its_ties():
    (found,) = pareto(CELLS, "recall@5")
    assert [point.name for point in found.front] == ["fast", "twin a", "twin b", "slow"]
    assert len(found.points) == 7
    assert pareto(list(reversed(CELLS)), "recall@5")[0].front == found.front


def test_no_cell_beats_the_front_and_each_other_cell_is_beaten():
    rng = random.Random(3)
    cells = [cell(f"m{n}", rng.randint(0, 9) / 10, float(rng.randint(1, 9))) for n in range(80)]
    (found,) = pareto(cells, "recall@5")

    def beaten(one):
        return any(
            (o.value.value, -o.seconds) != (one.value.value, -one.seconds)
            and o.value.value >= one.value.value
            and o.seconds <= one.seconds
            for o in found.points
        )

    assert set(map(id, found.front)) == {id(point) for point in found.points if not beaten(point)}


def test_each_dataset_has_its_own_and_what_has_no_value_or_no_time_takes_no_part():
    others = [
        cell("other", 0.1, 99.0, "hotpotqa"), cell("stopped", 1.0, 0.1, status="stopped"),
        cell("untimed", 1.0, 0.1, seconds={}), cell("no gold", 1.0, 0.1, metrics={}),
    ]  # fmt: skip
    first, second = pareto([*CELLS, *others], "recall@5")
    assert (first.dataset, len(first.points)) == ("musique", 7)
    assert [point.name for point in second.front] == ["other"]


def test_text_and_markdown():
    (found,) = pareto(CELLS, "recall@5")
    assert found.to_text().splitlines()[1:5] == [
        "   Method  Recall@5 (%)         n  ms/question",
        "─  ──────  ──────────────────  ──  ───────────",
        "1  fast    40.0 [30.0, 50.0]   10        1.000",
        "2  twin a  60.0 [50.0, 70.0]   10        5.000",
    ]
    assert found.to_text().startswith("Pareto front on musique: 4 of 7 cells")
    assert r"| 4 | slow | 90.0 \[80.0, 100.0\] | 10 | 40.000 |" in found.to_markdown()


def test_the_picture_is_well_formed_shows_every_cell_and_is_the_same_again():
    named = [*CELLS, cell("a < b & c", 0.95, 80.0)]
    (found,) = pareto(named, "recall@5")
    drawn = scatter(found)
    assert drawn == scatter(pareto(named, "recall@5")[0])
    root = ElementTree.fromstring(drawn)
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(dots) == 8
    assert [dot.get("class") for dot in dots].count("front") == 5
    for dot in dots:
        assert 64 <= float(dot.get("cx")) <= 936
        assert 48 <= float(dot.get("cy")) <= 468


@pytest.mark.parametrize("low", [10.0**power * near for power in range(-6, 3) for near in (1 - 2**-52, 1.0, 1 + 2**-51)])
def test_the_ticks_of_the_seconds_enclose_them(low):
    ticks = _decades([low, 7 * low])
    assert ticks[0] <= low < ticks[1] and ticks[-2] < 7 * low <= ticks[-1]


@pytest.mark.parametrize("cells", [[cell("one", 0.0, 0.0)], [cell("a", 1.0, 1.0), cell("b", 1.0, 1.0)], CELLS[:2]])
def test_a_picture_of_few_points(cells):
    ElementTree.fromstring(scatter(pareto(cells, "recall@5")[0]))


def test_the_reports_write_their_files(tmp_path):
    said = REPORTS["leaderboard"].make(CELLS, "recall@5", tmp_path, 0.9)
    names = [row["method"] for row in json.loads((tmp_path / "leaderboard.json").read_text())["rows"]]
    assert names == ["slow", "twin a", "twin b", "as good and slower", "beaten", "fast", "fast and bad"]
    assert "90 % bootstrap" in said
    assert (tmp_path / "leaderboard.md").read_text().startswith("| Method | Dataset | Recall@5 (%) |")
    said = REPORTS["pareto"].make([*CELLS, cell("x", 0.1, 1.0, "hot pot")], "recall@5", tmp_path, 0.9)
    assert said.count("Pareto front on") == 2
    assert {path.name for path in tmp_path.glob("pareto*")} == {
        "pareto.md", "pareto.json", "pareto.musique.svg", "pareto.hot_pot.svg",
    }  # fmt: skip
    first, _ = json.loads((tmp_path / "pareto.json").read_text())
    assert [point["method"] for point in first["points"] if point["front"]] == ["slow", "fast", "twin b", "twin a"]
    assert "no front" in REPORTS["pareto"].make([], "recall@5", tmp_path, 0.9)
