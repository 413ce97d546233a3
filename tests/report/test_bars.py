"""Columns of community quality, the page's own table, and bars."""

import xml.etree.ElementTree as ET

import pytest

from graphrag_bench.config.overrides import report
from graphrag_bench.errors import UserError
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import make_columns
from graphrag_bench.report.experiment import REPORTS
from graphrag_bench.report.table import Table

SVG = "{http://www.w3.org/2000/svg}"


def cell(method, chi=None, tokens=0, dataset="musique", asked=10, **axes):
    metrics = {"community/count": {"value": 7.0, "n": None, "ci": None}}
    metrics |= {} if chi is None else {"community/chi": {"value": chi, "n": None, "ci": None}}
    return CellResult(method, dataset, axes, metrics, tokens={"answer": tokens}, asked=asked, answered=asked)


CELLS = [
    cell("ArchRAG", 12.345, 5_000, partition="leiden"),
    cell("ArchRAG", 3.0, 20_000, partition="scan"),
    cell("A <b> & c", None, 2_000_000, partition="leiden"),
]


def shapes(drawn, kind):
    return [one for one in ET.fromstring(drawn).iter(SVG + kind) if one.get("class")]


def test_columns_are_printed_as_the_metric_says():
    table = Table(CELLS, ["community/count", "community/chi", "community/similarity"])
    assert [column.text(0.12345) for column in table.columns] == ["0", "0.12", "0.123"]
    assert [column.label for column in table.columns] == ["Communities", "CHI", "Cosine similarity"]
    assert [row["values"]["community/chi"] and row["values"]["community/chi"]["best"] for row in table.to_json()["rows"]] == [
        True, False, None,
    ]  # fmt: skip
    with pytest.raises(UserError, match="Did you mean community/chi"):
        make_columns(["community/chj"], [])


def test_a_leaderboard_of_communities_shows_how_many_there_are(tmp_path):
    said = REPORTS["leaderboard"].make(CELLS, "community/chi", tmp_path, 0.95)
    assert "Communities" in said and "MRR" not in said
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["ArchRAG", "ArchRAG", "A"]


def test_a_table_of_the_pages_own_columns(tmp_path):
    said = REPORTS["table"].make(CELLS, ["query_tokens"], tmp_path, 0.95)
    assert said.splitlines()[0].split() == ["Method", "Dataset", "partition", "Tokens/question"]
    assert (tmp_path / "table.md").exists() and (tmp_path / "table.json").exists()


def test_bars_are_as_long_as_the_values(tmp_path):
    said = REPORTS["bars"].make(CELLS, ["community/chi", "query_tokens", "recall@5"], tmp_path, 0.95)
    assert said == "Bars: bars.community_chi.svg, bars.query_tokens.svg"
    drawn = (tmp_path / "bars.community_chi.svg").read_text("utf-8")
    one, other = (float(bar.get("width") or 0) for bar in shapes(drawn, "rect"))
    assert one / other == pytest.approx(12.345 / 3, rel=0.01)
    assert "–" in drawn and "A &lt;b&gt; &amp; c partition=leiden" in drawn and "logarithmic" not in drawn
    tokens = (tmp_path / "bars.query_tokens.svg").read_text("utf-8")
    widths = [float(bar.get("width") or 0) for bar in shapes(tokens, "rect")]
    assert "(logarithmic)" in tokens and widths[2] > widths[1] > widths[0] > 0
    again = REPORTS["bars"].make(CELLS, ["query_tokens"], tmp_path, 0.95)
    assert again == "Bars: bars.query_tokens.svg" and (tmp_path / "bars.query_tokens.svg").read_text("utf-8") == tokens


def test_bars_of_negative_values_begin_at_nothing(tmp_path):
    metrics = {"community/silhouette": {"value": -0.5, "n": None, "ci": None}}
    cells = [CellResult("below", "d", {}, metrics), CellResult("none", "d")]
    REPORTS["bars"].make(cells, ["community/silhouette"], tmp_path, 0.95)
    (bar,) = shapes((tmp_path / "bars.community_silhouette.svg").read_text("utf-8"), "rect")
    assert float(bar.get("width") or 0) == pytest.approx(960 - (16 + round(7.2 * 5)) - 96)
    assert "no bars" in REPORTS["bars"].make([], ["recall@5"], tmp_path, 0.95)


def test_intervals_stand_on_the_bars(tmp_path):
    scored = CellResult("m", "d", {}, {"recall@5": {"value": 0.5, "n": 9, "ci": [0.25, 1.0]}}, asked=9, answered=9)
    REPORTS["bars"].make([scored], ["recall@5"], tmp_path, 0.95)
    drawn = (tmp_path / "bars.recall_5.svg").read_text("utf-8")
    assert [line.get("class") for line in shapes(drawn, "path")] == ["spread", "axis"] and "Recall@5 (%)" in drawn


@pytest.mark.parametrize(
    ("about", "says"),
    [("{bars: community/chi}", "wants a list of columns"), ("{table: []}", "wants a list of columns"),
     ("{bars: [recal@5]}", "There is no column 'recal@5'"), ("{leaderboard: community/chj}", "Did you mean community/chi")],
)  # fmt: skip
def test_what_a_page_may_ask_for(tmp_path, monkeypatch, about, says):
    from graphrag_bench.config import sources

    page = tmp_path / "bad.yaml"
    page.write_text(f"report: {about}\n", "utf-8")
    monkeypatch.setattr(sources, "page", lambda *_: page)
    with pytest.raises(UserError, match=r"bad\.yaml:1") as caught:
        report(["experiment=bad"])
    assert says in str(caught.value)


def test_axes_tell_the_rows_of_one_method_apart(tmp_path):
    REPORTS["bars"].make(CELLS[:2], ["community/chi"], tmp_path, 0.95)
    drawn = (tmp_path / "bars.community_chi.svg").read_text("utf-8")
    assert "<title>partition=scan</title>" in drawn and "ArchRAG" not in drawn
