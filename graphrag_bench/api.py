"""The Python door: compare methods and get a table object."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from graphrag_bench.cells import cells
from graphrag_bench.display import display
from graphrag_bench.errors import UserError
from graphrag_bench.experiment import raise_stopped, run_cells, write_table
from graphrag_bench.llm.base import ChatBackend
from graphrag_bench.report.cell import CellResult
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
    if backend is not None and not isinstance(backend, ChatBackend):
        raise UserError(f"llm is the name of a model page or a backend object, and found {llm!r}.", 'Write llm="llamacpp".')
    if show not in ("auto", "live", "plain", "none"):
        raise UserError(f"show is auto, live, plain or none, and found {show!r}.", 'Write show="auto".')
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

    async def work() -> tuple[list[CellResult], dict[str, UserError]]:
        session = Session(progress=progress)
        if backend is not None:
            for cell in checked:
                session.use_backend(cell.config, backend)
        return await run_cells(checked, session)

    with display(show) as progress:
        for notice in notices:
            progress.say(notice)
        results, stopped = _apart(work())
    table = write_table(results, user_path(output))
    raise_stopped(stopped, len(checked))
    return table


def _dataset(dataset: str | Path) -> list[str]:
    from graphrag_bench.config import sources

    if isinstance(dataset, str) and dataset in sources.pages("dataset"):
        return [f"dataset={dataset}"]
    if user_path(dataset).is_dir():
        return ["dataset=folder", f"dataset.path={_quoted(dataset)}"]
    sources.page("dataset", str(dataset))  # raises, with the nearest name
    return []


def _quoted(path: str | Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Run the work here, or in a thread of its own where this thread's event loop is running.

    An interrupt stops the work, wherever it runs, before it is handed on.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: Future[T] = Future()
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        try:
            result.set_result(loop.run_until_complete(task))
        except BaseException as error:  # noqa: BLE001 - handed on to the caller's thread, whatever it is
            result.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="graphrag_bench.compare")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # a join without end would not let the interrupt through
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return result.result()
