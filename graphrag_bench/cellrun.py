"""Run one cell: offline stages, then questions batch by batch, then scores; everything kept in the cell's folder.

The folder holds, once the run is done:
    config.yaml      the resolved configuration
    run.json         versions, hashes, graph statistics, notes: what a reader needs to believe the numbers
    answers.jsonl    one line a question, appended as it finishes, put into question order at the end
    contexts.jsonl   what each prompt showed
    elements.jsonl   what was retrieved, section by section, before anything was cut: ids, scores, names
    metrics.json     the scores; per_question.jsonl: the same by question
    communities.json the quality of the graph's communities, level by level, where evaluation.communities asks for it
    ledger.jsonl     every model call; costs.json: tokens and seconds by stage; costs.jsonl: the same by question
Answers and metrics hold no time and nothing that depends on how often a run was interrupted: resumed or not, they are the
same bytes.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from graphrag_bench.answerbook import AnswerBook
from graphrag_bench.cellrecord import checksum, costs, fingerprint, manifest, question_costs, result_of
from graphrag_bench.cells import Cell, reaches
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.config.schema import SELECTORS
from graphrag_bench.data.types import Dataset
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import chosen_metrics
from graphrag_bench.evaluation.communities import CommunityQuality, community_quality
from graphrag_bench.evaluation.score import Scores
from graphrag_bench.generation.answers import Answer, Context
from graphrag_bench.generation.shelf import Shelf
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.texts import node_texts
from graphrag_bench.index.vectors import VectorIndex
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.ledger import Entry, Ledger
from graphrag_bench.pipeline.answering import answer_batch, retrieved_documents, retrieved_elements, with_failures
from graphrag_bench.pipeline.execute import convert, query_texts, retrieve
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.indexing import Indexes
from graphrag_bench.pipeline.stages import Stages, asks
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.registry import REGISTRY, Component
from graphrag_bench.report.cell import CellResult
from graphrag_bench.session import Session
from graphrag_bench.store.faults import disk_faults
from graphrag_bench.store.files import write_json, write_lines, write_text


class CellRun:
    """One cell on its way through its stages."""

    def __init__(self, session: Session, cell: Cell) -> None:
        self.session = session
        self.cell = cell
        self.config = cell.config
        self.dataset: Dataset = session.dataset(cell.config)
        self.folder = cell.folder(self.dataset.name)
        self.asked = self.dataset.questions[: cell.config["limit"]]
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._blocks: dict[str, tuple[float, float]] = {}  # what the last timed block of each stage took
        self.notes: list[str] = [*self.dataset.notes]
        self.ledger = Ledger()
        self.by_subject: dict[str, dict[str, tuple[int, float]]] = {}
        self.quality: CommunityQuality | None = None
        self._empty = 0
        self._chat: ChatModel | None = None
        self.stages = Stages(
            cell.config,
            self.dataset,
            session.store,
            lambda: session.embedder(cell.config),
            self.chat,
            lambda: session.backend(cell.config).identity,
            self._spent,
            session.progress,
        )
        self.indexes = Indexes(self.stages)

    def chat(self) -> ChatModel:
        """Return the cell's chat model."""
        if self._chat is None:
            self._chat = self.session.chat(self.config, self.ledger, self._booked)
        return self._chat

    def _booked(self, entry: Entry) -> None:
        """Show a call, and count it to the question (or chunk) it served."""
        tokens = entry.prompt_tokens + entry.completion_tokens
        self.session.progress.call(tokens, entry.cached)
        if entry.stage in ("extraction", "reports") and entry.subject not in self.by_subject:
            self.session.progress.advance(entry.stage)  # a chunk or a community counts from its first reply on
        row = self.by_subject.setdefault(entry.subject, {})
        counted, seconds = row.get(entry.stage, (0, 0.0))
        row[entry.stage] = (counted + tokens, seconds + entry.seconds)

    def _spent(self, stage: str) -> dict[str, Any]:
        totals = self.ledger.by_stage().get(stage)
        return totals.as_dict() if totals else {}

    @property
    def components(self) -> list[Component]:
        """Every component this cell uses."""
        found = [*self.cell.plan.components, *(component for component, _ in self.stages.components)]
        groups = ("dataset", "chunking", *(["embedder"] if self.embeds() else []))
        chosen = [(SELECTORS[group][0].kind, self.config[group][SELECTORS[group][0].key]) for group in groups]
        if self._searches_vectors():
            chosen.append(("index", self.config["index"]["backend"]))
        return [*found, *(REGISTRY.get(kind, name) for kind, name in chosen), *chosen_metrics(self._measured)]

    @property
    def _measured(self) -> list[str]:
        """The metrics of community quality that this cell computes."""
        return list(self.config["evaluation"]["communities"]) if self.cell.has_communities else []

    def _searches_vectors(self) -> bool:
        return any(isinstance(kind, type) and issubclass(kind, VectorIndex) for kind in self.cell.plan.loans)

    def embeds(self) -> bool:
        """Say whether anything in this cell is embedded."""
        offline = any(port.annotation is Embedder for component, _ in self.stages.components for port in component.ports)
        return offline or bool(self._measured) or self._searches_vectors() or Embedder in self.cell.plan.loans

    def uses_model(self) -> bool:
        """Say whether any part of this cell, as far as it goes, asks the chat model."""
        if any(asks(component, settings) for component, settings in self.stages.components):
            return True
        kinds: set[str] = set()
        if reaches(self.config, "retrieval"):
            kinds |= {"converter", "operator"}
        if reaches(self.config, "answer"):
            kinds.add("generator")
        return any(c.kind in kinds and any(p.annotation is ChatModel for p in c.ports) for c in self.cell.plan.components)

    def finished(self) -> CellResult | None:
        """Return the result that already lies in the folder, if it is this cell's."""
        limits = self.config["execution"]
        record = self._earlier()
        if limits["redo"] or limits["retry_failed"] or record.get("status") != "done":
            return None
        if record.get("fingerprint") != fingerprint(self):
            return None
        if any(checksum(self.folder / name) != known for name, known in record.get("files", {}).items()):
            self.session.progress.say(f"a file of the finished run in {self.folder} is missing or changed; it is run again")
            return None
        return CellResult(**record["result"] | {"notes": tuple(record["result"]["notes"])})

    def _earlier(self) -> dict[str, Any]:
        path = self.folder / "run.json"
        try:
            with disk_faults("read the run's folder", self.folder):
                record = json.loads(path.read_text("utf-8")) if path.exists() else {}
        except ValueError:
            return {"fingerprint": "unreadable"}
        return record if isinstance(record, dict) else {}

    async def result(self) -> CellResult:
        """Return the finished result that lies in the folder, or run the cell; one process at a time works in a folder."""
        async with self.session.store.alone(f"cell {self.folder.resolve()}", str(self.folder)):
            done = self.finished()
            if done is None:
                return await self.run()
        self.session.progress.finish("finished before", str(self.folder))
        return done

    async def run(self) -> CellResult:
        """Run the cell; return what the table shows of it."""
        self._set_aside_other()
        with disk_faults("make the run's folder", self.folder):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError as error:
                raise UserError(f"The folder {self.folder} cannot be made there.", "Choose another output=DIR.") from error
        write_text(self.folder / "config.yaml", _yaml(self.config))
        if self.uses_model():
            self._keep_ledger()
            self.ledger = self.session.ledger(self.config, self.folder / "ledger.jsonl")
        try:
            lend = await self._prepare()
            scores = await self._questions(lend) if reaches(self.config, "retrieval") else None
        finally:
            self.ledger.close()
        result = result_of(self, scores)
        write_json(self.folder / "costs.json", costs(self))
        if reaches(self.config, "retrieval"):
            write_lines(self.folder / "costs.jsonl", question_costs(self))
        write_json(self.folder / "run.json", manifest(self, result))
        return result

    def _keep_ledger(self) -> None:
        """Keep what a killed run booked, beside this one's: ledger.1.jsonl and so on."""
        path = self.folder / "ledger.jsonl"
        with disk_faults("keep the earlier ledger", self.folder):
            if path.exists():
                path.replace(self.folder / f"ledger.{len(list(self.folder.glob('ledger.*.jsonl'))) + 1}.jsonl")

    def _set_aside_other(self) -> None:
        """Keep what an earlier run left in this folder, under previous/: one with other settings, or one done again."""
        earlier = self._earlier()
        other = earlier.get("fingerprint")
        same = other == fingerprint(self)
        if other is None or (same and earlier.get("status") != "done"):
            return
        target = self.folder / "previous" / str(other)[:12]
        with disk_faults("set an earlier run aside", self.folder):
            target.mkdir(parents=True, exist_ok=True)
            for file in self.folder.iterdir():
                if file.is_file():
                    file.replace(target / file.name)
        held = "this run, finished before" if same else "a run with other settings"
        self.session.progress.say(f"{self.folder} held {held}; it lies now in {target}")

    async def _prepare(self) -> dict[Any, Any]:
        """Build or open the offline stages this cell needs, as far as it goes; return what is lent."""
        wanted, stages = self.cell.plan.loans, self.stages
        lend: dict[Any, Any] = {}
        with self._clock("index"):
            lend[ChunkTable] = await stages.chunks()
            if stages.builder() is not None:
                lend[Graph] = await stages.graph()
        if self._measured:
            with self._clock("evaluation"):
                self.quality = await self._measure_communities(lend[Graph])
        if not reaches(self.config, "index"):
            return lend
        with self._clock("index"):
            lend |= await self.indexes.lend(wanted)
        if Embedder in wanted:
            lend[Embedder] = self.session.embedder(self.config)
        if GivenEntities in wanted:
            lend[GivenEntities] = self.given_entities()
        if self.uses_model():
            lend[ChatModel] = self.chat()
        return lend

    async def _measure_communities(self, graph: Graph) -> CommunityQuality:
        """Measure the communities by the vectors of the node index, and write communities.json."""
        stage, progress = "community quality", self.session.progress
        progress.stage(stage, 0)
        # through the store: an index of the nodes opens the same vectors; here they are no part of the index's cost
        embedder = self.stages.stored_embedder("node vectors")
        texts = node_texts(graph, self.config["index"]["node_text"])
        vectors = await asyncio.to_thread(embedder.embed, texts, "passage")
        found = await asyncio.to_thread(community_quality, graph, vectors, self._measured, seed=self.config["seed"])
        write_json(self.folder / "communities.json", found.to_json())
        progress.finish(stage)
        return found

    def given_entities(self) -> GivenEntities:
        """Return the entities that came with the questions; raise UserError where none did."""
        if self.dataset.question_entities is None:
            raise UserError(
                f"The dataset {self.dataset.name} gives no question entities, and entities.given reads them.",
                "Set method.question.entities.by=rule or =model.",
            )
        return GivenEntities(self.dataset.question_entities)

    async def _questions(self, lend: Mapping[Any, Any]) -> Scores:
        """Retrieve and answer batch by batch; return the scores, of a run that stops at its answers without a metric."""
        plan, progress = self.cell.plan, self.session.progress
        answers = reaches(self.config, "answer") and plan.generator is not None
        shelf = Shelf(lend[ChunkTable], lend.get(Graph))
        order = [question.id for question in self.asked]
        book = AnswerBook(self.folder, self.dataset, {d.id: d.text for d in self.dataset.documents} if answers else {})
        progress.stage("retrieval", len(order)) if plan.steps else None
        progress.stage("answers", len(order)) if answers else None
        try:
            for start in range(0, len(order), self.config["batch_size"]):
                batch = self.asked[start : start + self.config["batch_size"]]
                questions = Questions(tuple(q.id for q in batch), tuple(q.text for q in batch))
                await self._batch(questions, lend, shelf, book, answers=answers)
        finally:
            book.close()
        for stage in (["retrieval"] if plan.steps else []) + (["answers"] if answers else []):
            progress.finish(stage)
        self.notes += book.settle(order)
        if plan.steps and self._repeats > 1:
            self.notes.append(f"Retrieval was run {self._repeats} times; its seconds are those of the fastest.")
        if self._empty:
            self.notes.append(f"{self._empty} of {len(order)} questions retrieved nothing.")
        if answers and not reaches(self.config, "score"):
            return book.tally(order)
        depth, values = self.config["retrieval_depth"], self.config["evaluation"]
        if deeper := [k for k in values["ks"] if k > depth]:
            listed = ", ".join(map(str, deeper))
            self.notes.append(f"Rankings are kept to depth {depth} (retrieval_depth): nothing is said at {listed}.")
        return book.score(order, values, self.config["seed"], depth=depth, answered=answers)

    async def _batch(
        self, questions: Questions, lend: Mapping[Any, Any], shelf: Shelf, book: AnswerBook, *, answers: bool
    ) -> None:
        plan, progress = self.cell.plan, self.session.progress
        with self._clock("question"):
            questions = await convert(plan, lend, questions)
            if texts := query_texts(plan, questions):
                self.session.embedder(self.config).embed(texts, "query")
        rows, depth = range(len(questions)), self.config["retrieval_depth"]
        for turn in range(self._repeats):
            with self._clock("retrieve", least=turn > 0):
                values = await retrieve(plan, lend, questions)
                documents = {questions.ids[row]: retrieved_documents(plan, values, row, shelf, depth) for row in rows}
        questions = with_failures(questions, values)
        elements = {questions.ids[row]: retrieved_elements(plan, values, row, shelf, depth) for row in rows}
        if plan.sections:
            asked = [row for row in rows if row not in questions.failed]
            self._empty += sum(not any(elements[questions.ids[row]].values()) for row in asked)
        progress.advance("retrieval", len(questions))
        if not answers:
            for row in rows:
                reason = questions.failed.get(row, "")
                answer = Answer(questions.ids[row], "failed" if reason else "retrieved", None, reason)
                book.keep(answer, None, documents[answer.question], elements[answer.question])
            return

        def finished(answer: Answer, context: Context) -> None:
            book.keep(answer, context, documents[answer.question], elements[answer.question])
            progress.advance("answers")

        with self._clock("answer"):
            await answer_batch(plan, lend[ChatModel], questions, values, shelf, finished)

    @property
    def _repeats(self) -> int:
        """How often a batch is retrieved; where a step asks the model, once."""
        taken = {port.annotation for step in self.cell.plan.operators for port in step.component.ports}
        return 1 if ChatModel in taken else int(self.config["execution"]["repeats"])

    @contextmanager
    def _clock(self, stage: str, *, least: bool = False) -> Iterator[None]:
        """Add a block's wall and CPU seconds to a stage; with ``least`` it stands for the block before it if it was faster."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            spent = time.perf_counter() - wall, time.process_time() - cpu
            before = self._blocks.get(stage, (0.0, 0.0)) if least else (0.0, 0.0)
            self._blocks[stage] = min(before, spent) if least else spent
            self.seconds[stage] = self.seconds.get(stage, 0.0) + self._blocks[stage][0] - before[0]
            self.cpu[stage] = self.cpu.get(stage, 0.0) + self._blocks[stage][1] - before[1]


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))
