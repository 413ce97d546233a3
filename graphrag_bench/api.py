"""The Python door: compare methods and get a table object."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from graphrag_bench.cells import cells
from graphrag_bench.display import display
from graphrag_bench.errors import UserError
from graphrag_bench.experiment import raise_stopped, run_cells, write_table
from graphrag_bench.llm.base import ChatBackend
from graphrag_bench.report.table import Table
from graphrag_bench.session import Session
from graphrag_bench.store.faults import user_path

T = TypeVar("T")


def compare(
    methods: Sequence[str],
    dataset: str | Path = "sample",
    *,
    llm: str | ChatBackend = "llamacpp",
    embedder: str = "minilm",
    limit: int | None = None,
    seed: int = 0,
    output: str | Path = "runs",
    overrides: Sequence[str] = (),
    show: str = "auto",
) -> Table:
    """Run methods on one dataset and return the table; what was run before is read back.

    Works where an event loop runs already, as in a notebook.

    Args:
        methods: names of method pages.
        dataset: the name of a dataset page, or the path of a folder in the neutral layout.
        llm: the name of a model page, or a backend object.
        embedder: the name of an embedder page.
        limit: questions, from the first; None = all.
        seed: the run's seed.
        output: where the cells' folders go.
        overrides: further ``key=value`` settings, as on the command line.
        show: auto, live, plain or none.

    Returns:
        A table that prints, with ``.to_markdown()``, ``.to_latex()``, ``.to_pandas()``, ``.to_json()``.

    Raises:
        UserError: something is wrong with the request, or a stage cannot go on; what was finished is kept.
    """
    if isinstance(methods, str) or not methods:
        raise UserError("compare wants a list of methods.", 'Write compare(["vanilla", "hipporag"], …).')
    backend = None if isinstance(llm, str) else llm
    settings = [
        f"method={','.join(methods)}",
        *_dataset(dataset),
        f"llm={llm if isinstance(llm, str) else 'scripted'}",
        f"embedder={embedder}",
        f"limit={'null' if limit is None else limit}",
        f"seed={seed}",
        f"output={_quoted(output)}",
        *overrides,
    ]
    checked, notices = cells(settings, multirun=True)

    def work() -> Table:
        with display(show) as progress:
            session = Session(progress=progress)
            for notice in notices:
                progress.say(notice)
            if backend is not None:
                for cell in checked:
                    session.use_backend(cell.config, backend)
            results, stopped = asyncio.run(run_cells(checked, session))
            table = write_table(results, user_path(output))
            raise_stopped(stopped, len(checked))
            return table

    return _apart(work)


def _dataset(dataset: str | Path) -> list[str]:
    from graphrag_bench.config import sources

    if isinstance(dataset, str) and dataset in sources.pages("dataset"):
        return [f"dataset={dataset}"]
    if Path(dataset).expanduser().is_dir():
        return ["dataset=folder", f"dataset.path={_quoted(dataset)}"]
    sources.page("dataset", str(dataset))  # raises, with the nearest name
    return []


def _quoted(path: str | Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _apart(work: Callable[[], T]) -> T:
    """Do the work here, or in a thread of its own where this thread's event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    box: dict[str, Any] = {}

    def guarded() -> None:
        try:
            box["result"] = work()
        except BaseException as error:  # noqa: BLE001 - handed on to the caller's thread, whatever it is
            box["error"] = error

    thread = threading.Thread(target=guarded, name="graphrag_bench.compare")
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    result: T = box["result"]
    return result
