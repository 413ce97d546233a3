"""Tables as text: what is printed where, what is bold, what is flagged."""

import json
import subprocess
import sys
from typing import Any

import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.table import Table


def metric(value: float | None, low: float = 0.0, high: float = 1.0, n: int = 10) -> dict[str, Any]:
    return {"value": value, "n": n, "ci": None if value is None else [low, high]}


def cell(method: str, accuracy: float | None, dataset: str = "musique", **fields: Any) -> CellResult:
    settings: dict[str, Any] = {
        "axes": {}, "tokens": {"answer": 1000}, "seconds": {"answer": 12.5}, "asked": 10, "answered": 10,
        "metrics": {"accuracy": metric(accuracy, 0.53, 0.692)} if accuracy is not None else {},
    }
    return CellResult(method, dataset, **(settings | fields))


CELLS = [
    cell("ZeroShot", 0.2154),
    cell("Hippo_RAG", 0.615, metrics={"accuracy": metric(0.615, 0.53, 0.692), "recall@5": metric(0.8, 0.7, 0.95)},
         tokens={"extraction": 1_234_567, "index.gleaning": 3, "answer": 32_460, "judge": 9}, answered=9,
         failed={"timeout": 1}),
]


def test_the_terminal() -> None:
    assert str(Table(CELLS)) == """\
Method     Dataset  Accuracy (%)        Recall@5 (%)       Index tokens  Tokens/question  Seconds/question  Answered
─────────  ───────  ──────────────────  ─────────────────  ────────────  ───────────────  ────────────────  ────────
ZeroShot   musique   21.5 [53.0, 69.2]     –                         *0             *100             *1.25  10/10
Hippo_RAG  musique  *61.5 [53.0, 69.2]  80.0 [70.0, 95.0]     1,234,570            3,246             *1.25   9/10 †
* best of its dataset.
[low, high]: 95 % bootstrap interval over the questions.
† Hippo_RAG on musique: 9 of 10 answered (1 timeout)."""


def test_markdown() -> None:
    assert Table(CELLS).to_markdown() == r"""
| Method | Dataset | Accuracy (%) | Recall@5 (%) | Index tokens | Tokens/question | Seconds/question | Answered |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| ZeroShot | musique | 21.5 [53.0, 69.2] | – | **0** | **100** | **1.25** | 10/10 |
| Hippo_RAG | musique | **61.5** [53.0, 69.2] | 80.0 [70.0, 95.0] | 1,234,570 | 3,246 | **1.25** | 9/10 † |

\[low, high\]: 95 % bootstrap interval over the questions.\
† Hippo_RAG on musique: 9 of 10 answered (1 timeout).""".lstrip()


def test_latex() -> None:
    assert Table(CELLS, ["accuracy", "index_tokens", "answered"]).to_latex() == r"""% \usepackage{booktabs}
\begin{tabular}{llr@{\ }lrr}
\toprule
  Method & Dataset & \multicolumn{2}{c}{Accuracy (\%)} & Index tokens & Answered \\
\midrule
  ZeroShot & musique & 21.54 & {\scriptsize [53.00, 69.20]} & \textbf{0} & 10/10 \\
  Hippo\_RAG & musique & \textbf{61.50} & {\scriptsize [53.00, 69.20]} & 1,234,570 & 9/10\rlap{$^\dagger$} \\
\bottomrule
  \multicolumn{6}{l}{\footnotesize {[}low, high]: 95 \% bootstrap interval over the questions.} \\
  \multicolumn{6}{l}{\footnotesize $^\dagger$ Hippo\_RAG on musique: 9 of 10 answered (1 timeout).} \\
\end{tabular}"""


def test_every_special_character_is_escaped() -> None:
    table = Table([cell(r"a_b&c%d$e#f{g}~^\|<>", 0.5), cell("[x]", 0.4)], ["accuracy"], intervals=False)
    assert (
        r"a\_b\&c\%d\$e\#f\{g\}\textasciitilde{}\textasciicircum{}\textbackslash{}\textbar{}\textless{}\textgreater{} &"
        in table.to_latex()
    )
    assert "  {[}x] & musique & 40.00" in table.to_latex()
    assert r"a_b&c%d$e#f{g}~^\\\|\<> |" in table.to_markdown()
    assert "<td style=\"text-align:left\">a_b&amp;c%d$e#f{g}~^\\|&lt;&gt;</td>" in table._repr_html_()


def test_all_of_a_tie_are_bold_and_lower_is_better_for_costs() -> None:
    table = Table([cell("A", 0.61501), cell("B", 0.61502), cell("C", 0.5, tokens={"answer": 10})],
                  ["accuracy", "query_tokens"], intervals=False)
    assert [line for line in str(table).splitlines() if line[:1] in "ABC"] == [
        "A       musique         *61.5              100",
        "B       musique         *61.5              100",
        "C       musique          50.0               *1",
    ]


def test_datasets_do_not_compete_and_a_lone_row_is_not_best() -> None:
    table = Table([cell("A", 0.9, "d1"), cell("A", 0.1, "d2"), cell("B", 0.2, "d2")], ["accuracy"], intervals=False)
    best = [row["values"]["accuracy"]["best"] for row in table.to_json()["rows"]]
    assert best == [False, False, True]


def test_rows_come_by_dataset() -> None:
    cells = [cell("A", 0.1, "z"), cell("A", 0.1, "y"), cell("B", 0.1, "z")]
    assert [(row.dataset, row.method) for row in Table(cells).rows] == [("z", "A"), ("z", "B"), ("y", "A")]


def test_a_cell_that_did_not_finish_is_flagged_and_never_best() -> None:
    table = Table([cell("A", 0.9, status="stopped: budget spent"), cell("B", 0.2), cell("C", 0.1)],
                  ["accuracy"], intervals=False)
    assert str(table) == """\
Method  Dataset  Accuracy (%)
──────  ───────  ────────────
A ‡     musique          90.0
B       musique         *20.0
C       musique          10.0
* best of its dataset.
‡ A on musique: stopped: budget spent."""


def test_without_the_answered_column_the_method_carries_the_flag() -> None:
    assert "Hippo_RAG †  musique" in str(Table(CELLS, ["accuracy"]))


def test_seeds_are_averaged() -> None:
    cells = [cell("A", value, axes={"seed": seed, "llm": "m"}) for seed, value in enumerate((0.5, 0.6, 0.7))]
    cells.append(cell("B", 0.65, axes={"seed": 0, "llm": "m"}, answered=9))
    table = Table(cells, ["accuracy", "answered"])
    assert str(table) == """\
Method  Dataset  Accuracy (%)        Answered
──────  ───────  ──────────────────  ────────
A       musique   60.0 ± 10.0        30/30
B       musique  *65.0 [53.0, 69.2]   9/10 †
* best of its dataset.
llm = m.
[low, high]: 95 % bootstrap interval over the questions.
±: standard deviation over 3 runs that differ in seed.
† B on musique: 9 of 10 answered."""
    assert r"60.00 & {\scriptsize $\pm$ 10.00}" in table.to_latex()
    apart = Table(cells, ["accuracy"], over=None)
    assert [(row.method, row.axes["seed"]) for row in apart.rows] == [("A", 0), ("A", 1), ("A", 2), ("B", 0)]


def test_an_axis_that_varies_is_a_column_and_one_that_does_not_is_a_note() -> None:
    cells = [cell("A", 0.5, axes={"llm": "m", "k": k}) for k in (4, 8)]
    text = str(Table(cells, ["accuracy"], intervals=False))
    assert text.startswith("Method  Dataset  k  Accuracy (%)")
    assert text.endswith("llm = m.")


def test_a_note_of_every_row_is_printed_once() -> None:
    cells = [cell("A", 0.5, notes=("Amortised.",)), cell("B", 0.4, notes=("Amortised.", "Dense fallback."))]
    assert str(Table(cells, ["accuracy"])).splitlines()[-2:] == ["Amortised.", "B on musique: Dense fallback."]


def test_nothing_measured_is_a_dash_and_not_a_zero() -> None:
    table = Table([CellResult("A", "d", status="failed: no graph")])
    assert str(table).splitlines()[2].split() == ["A", "‡", "d", *["–"] * 6]
    assert "–" in str(Table([cell("A", None)], ["recall@5"]))


def test_no_cells() -> None:
    assert str(Table([], ["accuracy"])).splitlines()[0] == "Method  Dataset  Accuracy (%)"
    assert Table([]).to_latex().endswith(r"\end{tabular}")


def test_columns_of_any_metric_and_wrong_names() -> None:
    cells = [cell("A", 0.5, metrics={"win_rate": {"value": 0.525, "n": 10, "ci": None}, "recall@7": metric(0.25)})]
    assert str(Table(cells, ["win_rate", "recall@7"], intervals=False)).splitlines()[2].split()[2:] == ["0.53", "25.0"]
    with pytest.raises(UserError, match="Did you mean index_tokens"):
        Table(cells, ["indextokens"])
    with pytest.raises(UserError, match=r"stage 'extracting'.*Did you mean extraction"):
        cell("A", 0.5, tokens={"extracting": 3})


def test_json_and_pandas_hold_raw_values() -> None:
    table = Table(CELLS)
    assert json.loads(json.dumps(table.to_json()))["rows"][1]["values"]["accuracy"] == {
        "value": 0.615, "n": 10, "ci": [0.53, 0.692], "sd": None, "best": True,
    }
    frame = table.to_pandas()
    assert list(frame["accuracy"]) == [0.2154, 0.615]
    assert frame.loc[1, "recall@5_high"] == 0.95
    assert frame["answered"].tolist() == [10, 9]


def test_rich_shows_the_best_in_bold_and_does_not_read_brackets_as_markup() -> None:
    from rich.console import Console

    console = Console(width=160, force_terminal=True, color_system="standard", record=True)
    with console.capture() as capture:
        console.print(Table(CELLS))
    printed = capture.get()
    assert "\x1b[1m61.5\x1b[0m [53.0, 69.2]" in printed
    assert "[low, high]: 95 %" in printed


def test_a_notebook() -> None:
    html = Table(CELLS)._repr_html_()
    assert "<b>61.5</b><small> [53.0, 69.2]</small>" in html
    assert Table(CELLS)._repr_markdown_() == Table(CELLS).to_markdown()


def test_importing_pulls_in_neither_pandas_nor_rich() -> None:
    code = ("import sys, graphrag_bench.report.table, graphrag_bench.evaluation.show\n"
            "sys.exit(bool({'pandas', 'rich', 'scipy', 'matplotlib'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
