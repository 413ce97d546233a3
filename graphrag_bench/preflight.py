"""What can be known before anything is spent: the wiring, the probe, the data, and the bill."""

import asyncio
import io
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import Cell, cells, reaches
from graphrag_bench.data.types import GivenOpenIE
from graphrag_bench.errors import UserError
from graphrag_bench.estimates import Estimates
from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.estimate import Calls
from graphrag_bench.llm.service import Chat
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.loans import INDEXES
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.probe import probe
from graphrag_bench.pipeline.toy import toy
from graphrag_bench.session import Session, price_of
from graphrag_bench.store.faults import disk_faults

_SIGNS = {"": "", "at most": "≤ ", "about": "~ "}
_MB = 1e6


@contextmanager
def prober() -> Iterator[Callable[[Plan, frozenset[str]], Coroutine[Any, Any, None]]]:
    """Lend a probe: it runs a plan on the toy graph that carries some attributes; each toy is made once.

    Raises:
        UserError: by the probe, for a plan that breaks.
    """
    try:
        aside = tempfile.TemporaryDirectory()
    except FileNotFoundError as error:  # what tempfile says of a full disk, too
        raise UserError(
            "No folder for temporary files can be written to.", "Free some space, or set TMPDIR to another folder."
        ) from error
    with aside as folder, disk_faults("write the probe's files", Path(folder)):
        model = Chat(Scripted())
        toys: dict[frozenset[str], dict[object, Any]] = {}

        async def run(plan: Plan, carried: frozenset[str]) -> None:
            if carried not in toys:
                toys[carried] = toy(Path(folder) / str(len(toys)), model, carried)
            await probe(plan, toys[carried])

        yield run


async def probe_cells(checked: Sequence[Cell]) -> None:
    """Run every distinct plan on the toy graph with a scripted model; raise UserError for the first that breaks."""
    with prober() as run:
        # settings count, not the chain alone; and so does the kind of graph
        for plan, carried in {(repr(c.plan), c.ground): (c.plan, c.ground.attributes) for c in checked}.values():
            await run(plan, carried)


def check(overrides: Sequence[str], *, multirun: bool) -> str:
    """Check a run: pages, wiring, probe, data. Return what was found, a block a cell.

    Raises:
        UserError: whatever is wrong, all of it; nothing was spent.
    """
    checked, notices = cells(overrides, multirun)
    asyncio.run(probe_cells(checked))
    session = Session()
    lines = [f"note: {notice}" for notice in notices]
    for cell in checked:
        run = CellRun(session, cell)
        needs(run)
        lines.append(f"{cell.config['method']['name']} on {run.dataset.name}: {cell.plan.line()}")
        lines.append(
            f"  graph {cell.config['graph'].get('builder') or 'none'}, indexes {_indexes(cell) or 'none'}, "
            f"{len(run.dataset.documents):,} documents, {len(run.dataset.questions[: cell.config['limit']]):,} questions"
        )
        lines.extend(f"  note: {note}" for note in run.dataset.notes)
        lines.extend(f"  note: {note}" for note in _long(run))
    count = len(checked)
    return "\n".join([*lines, f"{count} cell{'s' * (count > 1)} checked and probed; nothing was spent."])


def _indexes(cell: Cell) -> str:
    return ", ".join(name for kind, name in INDEXES.items() if kind in cell.plan.loans)


def needs(run: CellRun) -> None:
    """Raise where a file or the dataset lacks what the method reads, or the model's backend cannot be made."""
    config = run.config
    run.stages.look()
    if run.uses_model():
        run.session.backend(config)
    if any(port.annotation == GivenOpenIE for component, _ in run.stages.components for port in component.ports):
        run.stages.given_triples()
    if GivenEntities in run.cell.plan.loans:
        run.given_entities()
    if reaches(config, "retrieval") and not run.dataset.questions:
        raise UserError(
            f"The dataset {run.dataset.name} has no questions.", "Add a questions file, or stop at until=index."
        )


def _long(run: CellRun) -> list[str]:
    """Say how many passages are longer than the embedder's window, where they are embedded and the embedder can tell."""
    if ChunkVectors not in run.cell.plan.loans:
        return []
    chunks = asyncio.run(run.stages.chunks())
    count = run.session.embedder(run.config).long_texts([chunk.text for chunk in chunks])
    return (
        [f"{count:,} of {len(chunks):,} chunks are longer than the embedder's window; see embedder.long_text."]
        if count
        else []
    )


def plan(overrides: Sequence[str], *, multirun: bool) -> str:
    """Estimate what a run will cost, stage by stage, and say what the store holds; return it as a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    checked, notices = cells(overrides, multirun)
    session = Session()
    table = RichTable(
        box=box.SIMPLE,
        title="Estimated from the data; a stage several cells share is counted once; embedding tokens are not priced.",
        caption="Calls: exact as far as none fails; ≤ at most, since what is found decides; ~ about, since the graph does.",
    )
    for heading in ("cell", "stage", "calls", "prompt tokens", "reply tokens", "MB", "money", ""):
        table.add_column(heading, justify="left" if heading in ("cell", "stage", "") else "right")
    sums, disk, money, seen, priced, silent = Calls(), 0.0, 0.0, set[str](), False, dict[str, None]()
    for cell in checked:
        run = CellRun(session, cell)
        needs(run)
        prices = price_of(session.backend(cell.config).identity) if run.uses_model() else None
        priced = priced or prices is not None
        done = run.finished() is not None
        estimates = Estimates(run)
        silent |= estimates.silent
        for item in estimates.rows:
            shared = bool(item.key) and item.key in seen
            seen.add(item.key)
            asked = item.asked
            cost = prices.cost(asked.prompt_tokens, asked.reply_tokens) if prices and "vectors" not in item.stage else 0.0
            state = "finished before" if done else "in the store" if item.there else "shared with a cell above" * shared
            if not state:
                sums, disk, money = sums + asked, disk + item.megabytes, money + cost
            price = f"{cost:.2f}" if prices else "–"
            table.add_row(cell.config["method"]["name"], item.stage, *_numbers(asked, item.megabytes), price, state)
    table.add_section()
    price = f"{money:.2f}" if priced else "–"
    table.add_row("", "to pay", *_numbers(sums, disk), price, "finished replies are not paid again")
    console = Console(width=shutil.get_terminal_size((120, 40)).columns, record=True, file=io.StringIO())
    console.print(table)
    notices += [f"{name} says nothing of its calls: one a unit is assumed" for name in silent]
    notes = "".join(f"note: {notice}\n" for notice in notices)
    free = shutil.disk_usage(_existing(session.root)).free / _MB
    return f"{notes}{console.export_text()}store: {session.root} ({free:,.0f} MB free)"


def _numbers(asked: Calls, megabytes: float) -> tuple[str, str, str, str]:
    calls = f"{_SIGNS[asked.bound]}{asked.calls:,}"
    return calls, f"{asked.prompt_tokens:,}", f"{asked.reply_tokens:,}", f"{megabytes:.1f}"


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
