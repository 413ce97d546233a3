"""What can be known before anything is spent: the wiring, the probe, the data, and the bill."""

import asyncio
import io
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import Cell, cells, reaches
from graphrag_bench.config.schema import filled
from graphrag_bench.data.types import GivenOpenIE
from graphrag_bench.errors import UserError
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.service import Chat
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.loans import INDEXES
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.probe import probe
from graphrag_bench.pipeline.toy import toy
from graphrag_bench.registry import REGISTRY
from graphrag_bench.session import Session, price_of
from graphrag_bench.store.faults import disk_faults

_REPLY_TOKENS = {
    "entities": 60,
    "triples": 250,
    "question": 25,
    "answer": 12,
}  # typical of the replies seen, not bounds
_TRIPLES_A_CHUNK = 9
_NAME_TOKENS = 4
_MB = 1e6


@contextmanager
def prober() -> Iterator[Callable[[Plan, frozenset[str]], Awaitable[None]]]:
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
    """Raise where the dataset lacks what the method reads, or the model's backend cannot be made."""
    config = run.config
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


@dataclass
class Estimate:
    """What a stage will take: calls, tokens, megabytes; ``there`` says that the store holds it already."""

    stage: str
    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    megabytes: float = 0.0
    there: bool = False
    key: str = field(default="")


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
    )
    for heading in ("cell", "stage", "calls", "prompt tokens", "reply tokens", "MB", "money", ""):
        table.add_column(heading, justify="left" if heading in ("cell", "stage", "") else "right")
    sums = Estimate("to pay")
    money, seen, priced = 0.0, set[str](), False
    for cell in checked:
        run = CellRun(session, cell)
        needs(run)
        prices = price_of(session.backend(cell.config).identity) if run.uses_model() else None
        priced = priced or prices is not None
        done = run.finished() is not None
        for item in _estimates(run):
            item.there = item.there or done
            shared = bool(item.key) and item.key in seen
            seen.add(item.key)
            pays = not item.there and not shared
            cost = prices.cost(item.prompt_tokens, item.reply_tokens) if prices and "vectors" not in item.stage else 0.0
            if pays:
                sums.calls, sums.prompt_tokens = sums.calls + item.calls, sums.prompt_tokens + item.prompt_tokens
                sums.reply_tokens, sums.megabytes = (
                    sums.reply_tokens + item.reply_tokens,
                    sums.megabytes + item.megabytes,
                )
                money += cost
            state = (
                "finished before"
                if done
                else "in the store"
                if item.there
                else "shared with a cell above"
                if shared
                else ""
            )
            table.add_row(
                cell.config["method"]["name"],
                item.stage,
                f"{item.calls:,}",
                f"{item.prompt_tokens:,}",
                f"{item.reply_tokens:,}",
                f"{item.megabytes:.1f}",
                f"{cost:.2f}" if prices else "–",
                state,
            )
    table.add_section()
    table.add_row(
        "",
        sums.stage,
        f"{sums.calls:,}",
        f"{sums.prompt_tokens:,}",
        f"{sums.reply_tokens:,}",
        f"{sums.megabytes:.1f}",
        f"{money:.2f}" if priced else "–",
        "finished replies are not paid again",
    )
    console = Console(width=shutil.get_terminal_size((120, 40)).columns, record=True, file=io.StringIO())
    console.print(table)
    notes = "".join(f"note: {notice}\n" for notice in notices)
    free = shutil.disk_usage(_existing(session.root)).free / _MB
    return f"{notes}{console.export_text()}store: {session.root} ({free:,.0f} MB free)"


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _estimates(run: CellRun) -> list[Estimate]:
    config, stages, cell = run.config, run.stages, run.cell
    documents = run.dataset.documents
    words = sum(len(d.text) + len(d.title) for d in documents)
    chunk_found = run.session.store.find(stages.chunk_spec())
    chunks, tokens = _chunked(run)
    found = [Estimate("chunks", megabytes=words / _MB / 3, there=chunk_found is not None, key=stages.chunk_spec().key)]
    embedder = REGISTRY.get("embedder", config["embedder"]["backend"])
    per_vector = 4.0 * run.session.embedder(config).dim / _MB if run.embeds() else 0.0
    served = "base_url" in embedder.settings  # an embedder behind an address is asked over the network, and may cost
    batch = filled(config["embedder"], embedder.settings).get("batch_size", 1) if served else 1
    if stages.builder() is not None:
        spec = stages.extraction_spec()
        there = run.session.store.find(spec) is not None
        asks = any(port.annotation is ChatModel for port in stages.extractor().ports)
        overhead = 150 * 2 * chunks
        found.append(
            Estimate(
                "extraction",
                2 * chunks * asks,
                (2 * tokens + overhead + 60 * chunks) * asks,
                (_REPLY_TOKENS["entities"] + _REPLY_TOKENS["triples"]) * chunks * asks,
                words / _MB / 3,
                there,
                spec.key,
            )
        )
        graph = run.session.store.find(stages.graph_spec())
        nodes = graph.facts["nodes"] if graph else _TRIPLES_A_CHUNK * chunks
        found.append(
            Estimate("graph", megabytes=nodes * 80 / _MB, there=graph is not None, key=stages.graph_spec().key)
        )
        if NodeVectors in cell.plan.loans and reaches(config, "index"):
            found.append(
                Estimate(
                    "node vectors",
                    -(-nodes // batch) * served,
                    _NAME_TOKENS * nodes * served,
                    megabytes=nodes * per_vector,
                    there=graph is not None,
                    key=f"nodes {stages.graph_spec().key}",
                )
            )
    if ChunkVectors in cell.plan.loans and reaches(config, "index"):
        key = f"chunks {stages.chunk_spec().key}"
        vectors = run.session.store.find(run.indexes.chunk_spec()) if chunk_found else None
        calls, asked_tokens = -(-chunks // batch) * served, tokens * served
        megabytes = chunks * per_vector
        found.append(Estimate("chunk vectors", calls, asked_tokens, 0, megabytes, vectors is not None, key))
    if LexicalIndex in cell.plan.loans and reaches(config, "index"):
        spec = run.indexes.lexical_spec()
        found.append(
            Estimate(
                "lexical index", megabytes=words / _MB, there=run.session.store.find(spec) is not None, key=spec.key
            )
        )
    asked = run.dataset.questions[: config["limit"]]
    text = sum(len(question.text) for question in asked) // 4
    if reaches(config, "retrieval") and any(
        ChatModel in {p.annotation for p in c.ports} for c, _ in cell.plan.converters
    ):
        found.append(Estimate("question", len(asked), text + 90 * len(asked), _REPLY_TOKENS["question"] * len(asked)))
    if reaches(config, "answer") and cell.plan.generator is not None:
        shown = sum((section.top_k or config["retrieval_depth"]) for section in cell.plan.sections)
        context = min(shown * tokens // max(chunks, 1), _window(run))
        reply = 120 if cell.plan.generator[1].get("reasoning") else _REPLY_TOKENS["answer"]
        found.append(Estimate("answer", len(asked), text + (60 + context) * len(asked), reply * len(asked)))
    return found


def _chunked(run: CellRun) -> tuple[int, int]:
    """Return how many chunks the corpus makes and their tokens; cutting is free, so it is done where it was not yet."""
    found = run.session.store.find(run.stages.chunk_spec())
    if found is not None:
        return int(found.facts["chunks"]), int(found.facts["tokens"])
    component = REGISTRY.get("chunker", run.config["chunking"]["chunker"])
    chunks = component.call(run.dataset.documents, **filled(run.config["chunking"], component.settings))
    return len(chunks), sum(chunk.tokens for chunk in chunks)


def _window(run: CellRun) -> int:
    """Return the answering model's window, in tokens."""
    return int(run.session.backend(run.config).window)
