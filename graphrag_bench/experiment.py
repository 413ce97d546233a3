"""Run the cells of an experiment, one after the other over one session, and show the table."""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import Cell, cells
from graphrag_bench.config.overrides import report
from graphrag_bench.display import display
from graphrag_bench.errors import BudgetExceeded, Faults, UserError
from graphrag_bench.evaluation.catalogue import PREFIX
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import DEFAULT_COLUMNS
from graphrag_bench.report.experiment import REPORTS
from graphrag_bench.report.table import Table
from graphrag_bench.session import Session
from graphrag_bench.store.faults import user_path
from graphrag_bench.store.files import write_json, write_text

Out = Callable[[str], None]
Ran = tuple[list[CellResult], dict[str, UserError]]
RETRIEVAL_COLUMNS = (
    "recall@2",
    "recall@5",
    "all_gold@5",
    "mrr",
    "index_tokens",
    "index_seconds",
    "query_seconds",
    "answered",
)
INDEX_COLUMNS = ("index_tokens", "index_seconds")
ANSWER_COLUMNS = (*INDEX_COLUMNS, "query_tokens", "query_seconds", "answered")


def run_to_end(
    overrides: Sequence[str], *, multirun: bool = False, out: Out, store: Path | None = None
) -> list[CellResult]:
    """Check every cell, run them, print the table and the folder.

    Args:
        overrides: what to run, as on the command line.
        multirun: whether commas make a sweep.
        out: where the table goes.
        store: the artifact store; the user's own unless given.

    Raises:
        UserError: something is wrong with the request, or a stage cannot go on; what was finished is kept.
    """
    wanted = report(overrides)
    checked, notices = cells(overrides, multirun)
    with display(checked[0].config["logging"]["display"]) as progress:
        for notice in notices:
            progress.say(notice)
        results, stopped = asyncio.run(_interruptible(run_cells(checked, Session(store, progress))))
    folder = user_path(checked[0].config["output"])
    table = write_table(results, folder)
    reports = [REPORTS[name].make(results, about, folder, _level(checked)) for name, about in wanted.items()]
    shown = any(REPORTS[name].is_table for name in wanted)
    out("\n\n".join(reports) if shown else "\n\n".join([str(table), *reports]))
    if calls := progress.totals():
        out(calls)
    out(f"Results: {folder}  (table.md; a folder a cell with answers.jsonl, metrics.json, run.json)")
    raise_stopped(stopped, len(checked))
    return results


def _level(checked: Sequence[Cell]) -> float:
    return float(checked[0].config["evaluation"]["interval"])


def raise_stopped(stopped: Mapping[str, UserError], of: int) -> None:
    """Raise what stopped cells of a sweep, each reason once; do nothing where none did."""
    if stopped:
        count = len(stopped)
        raise Faults(f"{count} of {of} cells stopped; the others are finished and kept.", stopped.values())


async def run_cells(checked: Sequence[Cell], session: Session) -> Ran:
    """Probe every plan, then run the cells in order; a cell whose result lies finished in its folder is read back.

    Where a cell of several cannot go on, the others are run nevertheless; only the end of the budget stops them all.

    Returns:
        the results in order, a stopped cell's without scores, and the reasons of the stopped ones by their names.
    """
    from graphrag_bench.preflight import needs, probe_cells

    await probe_cells(checked)
    results: list[CellResult] = []
    stopped: dict[str, UserError] = {}
    async with session:
        runs = deque(CellRun(session, cell) for cell in checked)  # every dataset is read before anything is spent
        for run in runs:
            needs(run)
        while runs:
            run = runs.popleft()  # a finished cell's graph need not stay in memory
            name = " · ".join(
                [run.config["method"]["name"], run.dataset.name, *(f"{k}={v}" for k, v in run.cell.axes.items())]
            )
            session.progress.cell(name, len(checked) - len(runs), len(checked))
            try:
                results.append(await run.result())
            except BudgetExceeded:
                raise
            except UserError as error:
                if len(checked) == 1:
                    raise
                stopped[name] = UserError(f"{name}: {error.problem}", error.fix)
                results.append(
                    CellResult(
                        run.config["method"]["name"],
                        run.dataset.name,
                        run.cell.axes,
                        status="stopped",
                        notes=(str(error),),
                    )
                )
    return results, stopped


async def _interruptible(work: Coroutine[Any, Any, Ran]) -> Ran:
    """Turn SIGTERM into a clean cancellation, as Ctrl-C already is."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    with contextlib.suppress(
        NotImplementedError, RuntimeError, ValueError
    ):  # not the main thread, or not this platform
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def write_table(results: Sequence[CellResult], folder: Path) -> Table:
    """Write table.md and table.json into the run's folder and return the table.

    A run that stopped early shows what it has: retrieval metrics, what answers cost, or what the index cost; before them
    the quality of the communities, where it was measured.
    """
    held = dict.fromkeys(name for result in results for name in result.metrics)
    communities = [name for name in held if name.startswith(PREFIX)]
    columns: Sequence[str]
    if "accuracy" in held:
        columns = DEFAULT_COLUMNS
    elif len(held) > len(communities):
        columns = RETRIEVAL_COLUMNS
    else:
        answered = any("answer" in result.tokens for result in results)
        columns = ANSWER_COLUMNS if answered else INDEX_COLUMNS
    table = Table(results, [*communities, *columns])
    write_text(folder / "table.md", table.to_markdown() + "\n")
    write_json(folder / "table.json", table.to_json())
    return table
